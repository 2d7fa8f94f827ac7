// Package sim lives whole days of a swarm in seconds: a discrete-event
// simulation in virtual time, seeded, with the same output for the same input.
// It answers what a policy does to latencies, loads and losses before anybody
// buys the machines.
//
// Every decision is made by package swarm: plans by its Planner, routes by
// Router.RouteRequest and Router.Choose, rescues by FailoverInSwarm and
// Router.Rescue. The simulator owns time and physics only, and hands those
// functions what a gateway would know at that moment, which is late. The blind
// policies that they are compared with (random, round-robin, least-loaded) are
// the only choices made here.
//
// # The model
//
// A request has a prompt and an answer of so many tokens. It takes the stages
// of its route in a star: for every token the gateway asks each stage's node in
// turn and pays that node's round trip. The prompt is read first, in pieces.
//
// A node computes all sessions that are there at the same moment in one batch.
// With b sessions in the batch a step takes
//
//	layers * time per layer * (1 + batch cost * (b-1))      for b up to its slots,
//
// and past its slots sessions take turns: the step of a full batch, times
// b/slots. Nothing is refused; a crowded node is a slow one. How many sessions
// are at a node at one moment follows mean value analysis: a session is at each
// of its stages for its share of an unhindered step, and meets there the shares
// of all others. (After the arrival theorem of Reiser and Lavenberg; between
// whole numbers of sessions the formula is read as it stands.)
//
// A session advances in pieces of several tokens, and looks at the batches
// again before each piece.
//
// Health reports leave each node at a fixed interval and arrive after a fixed
// delay. What the gateway measures itself (time per layer, round trip) it knows
// from the sessions that it ran.
//
// A node dies silently. Its sessions stand still until the gateway notices, then
// each is rescued or lost. A rescue onto another copy reads prompt and answer
// again; a splice replays the lost layers only. A returning node has forgotten
// its sessions and is used again when its first report arrives.
//
// # What it does not do
//
// It does not simulate KV room, failing requests, admission queues, model
// loading or plans that change: the plan of the start is the plan of the end.
package sim
