// Package admission makes requests wait for room, fairly and not for ever. It
// stands in front of the dispatcher as a Router of the same shape: a choice that
// succeeds at once passes straight through; one that finds no room or no ready
// copy waits in its model's queue until it is granted, refused, or abandoned by
// its client.
//
//	request --> enter --room--------------------------------> granted
//	              |                                              ^
//	              | none                                         | pass: somebody
//	              v                                              | gave room back
//	           waiting ------------------------------------------+
//	              |
//	              +--> refused: queue full, wait too long, no room in time,
//	              |    not ready, too large
//	              +--> left: its context ended
//
// The contract:
//
//   - A queue is bounded; what overflows is refused and counted by reason.
//   - Whoever waits holds nothing: no lock, no reservation, no goroutine but the
//     request's own. One goroutine serves all queues while anybody waits, and
//     ends with the last one.
//   - A client that leaves frees its place at once, and what it was granted at
//     that very moment.
//   - Between keys room is shared by virtual time (start-time fair queueing,
//     Goyal, Vin and Cheng 1996): each key is charged for the cells it was
//     granted, and the one that was charged least goes first. A step of priority
//     is charged a quarter. Nothing is ever starved by a priority.
//   - A request that finds no room may be passed by smaller ones, but only until
//     those together took as much as it asks for; then everybody behind waits
//     until it was served or its time is up.
//   - An answer that runs asks for more room as it gets longer. Who was admitted
//     first goes first (grow.go): the youngest gives all its room back and waits,
//     before all that have not begun. Nobody is stuck, and the oldest always gets on.
//     That holds over all gateways that share the nodes (afar.go).
//   - Refusals are honest: when to come again is computed from how fast room has
//     been given back and who else was told to come.
//
// It refuses to guess routes (the dispatcher's), to know what a key may do, and
// to hold requests beyond a gateway's own life.
package admission
