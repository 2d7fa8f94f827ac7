// Package top is the swarm in a terminal, live: nodes, copies, speed, events. It
// watches the same stream as the page, GET /v1/swarm/live, and knows nothing
// that is not in it.
//
// A Picture is put together from frames; Screen draws one, purely; Run keeps
// both going until the user has seen enough.
package top
