// Package swarm decides who runs what: it plans copies of a model over nodes,
// prices routes, chooses one for a request, and finds another when a node dies.
//
// Everything here is pure and synchronous: no I/O, no clock, no goroutine and
// no randomness that the caller did not seed. The same input gives the same
// output on every platform. Costs are integers, so ties are real ties.
package swarm
