// Package node is the worker: it loads the layers that the plan gives it, runs
// sessions on them and says how it is.
//
//	plan ──► loader ──► engine ◄── stages ◄── sessions of the data plane
//	                      │           │
//	                      └─► gauge ◄─┘ ──► health, each second
//
// A stage's state (its cache, its tokens) lives a while longer than its
// connection: a gateway that reconnects takes it up again. Owners: the loader
// owns what is loaded, a stage is owned by the handler that serves it or, in
// between, by the keeper.
package node
