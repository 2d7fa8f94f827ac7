// Package swarm decides who runs what: it plans copies of a model over nodes,
// prices routes, chooses one for a request, and finds another when a node dies.
//
// Everything here is pure and synchronous: no I/O, no clock, no goroutine and
// no randomness that the caller did not seed. The same input gives the same
// output on every platform. Costs are integers, so ties are real ties.
//
// # The classic rules
//
// They work on plain values and are exact down to the last tie:
//
//   - ScoreRoute finds the cheapest chain of fragments inside one model.
//   - RouteRequest chooses the cheapest living copy of a Plan.
//   - Failover repairs one route, FailoverInSwarm finds what stands in for it.
//   - ValidateRoute checks any route from scratch.
//   - Eval answers arrays of cases in JSON, so that anyone can check the rules.
//
// A State is a Plan and the nodes' samples, kept apart: the plan is expensive
// and changes rarely, telemetry is cheap and changes always.
//
// # The adaptive rules
//
// A Fleet holds what changes from second to second, and a Router is a plan
// compiled for it. Router.Choose prices by measured time: see Term for what is
// counted and Policy for what may be tuned. Fleet.Reserve makes work count at
// once; Router.Rescue takes a running answer on; Router.Explain says what was
// weighed and why. A Circuit takes a failing node out of use for a while.
//
//	sample ----> Fleet.Observe --+
//	ping, KV --> Fleet.Signal ---+--> Router.Choose --> Fleet.Reserve --> Lease.Release
//	outcome ---> Circuit --------+         |                  ^
//	plan ------> NewRouter ------+         +-- node dies --> Router.Rescue
//
// # From plan to plan
//
// Transition orders the steps from one Plan to the next, loads, moves and unloads, so
// that on the way every layer keeps a holder and every node its budget, or says which
// interruption is the smallest. The gateway does not follow such a list: it looks at
// what nodes really hold before each step. The list is for those who want to know
// beforehand what a change will cost.
//
// # What it refuses to do
//
// It never answers with another model, unless a fallback was declared, and
// then the route is labelled degraded. It never returns a spliced route that
// it has not validated. It does not measure, connect, retry or wait.
package swarm
