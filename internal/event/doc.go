// Package event is the one stream of what happens in a swarm, as its gateway
// sees it: nodes come and go, plans change, answers are rescued or lost,
// connections break, models become ready, requests are refused. Logs, metrics,
// the page, the terminal view and tests listen to the same stream, so that they
// never tell different stories.
//
// Whoever sees something happen publishes a [Fact]. The [Stream] numbers it and
// keeps the newest in a ring of fixed size. A subscriber is a cursor into that
// ring: it takes what is new when it has time, and a slow one holds nobody up.
// What the ring has already forgotten by then is counted, by reason.
//
// The package decides nothing: an event changes no state, and losing one loses
// no state. Who wants to know how things are looks at the report.
package event
