package swarm

// A Lease is the work that one session has in flight, reserved on each node of
// its route. It counts in every price from the moment it is taken, before any
// telemetry can show it, and until it is released by its owner; nothing else
// ends it.
type Lease struct {
	fleet  *Fleet
	nodes  []int32 // one per stage: a node with two stages has two sessions
	tokens int
}

// Reserve takes a lease on every stage's node of the route, for that many KV
// cells each (below zero counts as none).
func (f *Fleet) Reserve(route Route, kvTokens int) *Lease {
	l := &Lease{fleet: f, nodes: make([]int32, len(route.Stages)), tokens: max(0, kvTokens)}
	for i, s := range route.Stages {
		l.nodes[i] = f.index(s.Node)
		f.hand(l.nodes[i], 1, l.tokens)
	}
	return l
}

// Release gives the work back, once: it reports whether this call did it. A
// nil lease has nothing to give back.
func (l *Lease) Release() bool {
	if l == nil || l.fleet == nil {
		return false
	}
	for _, n := range l.nodes {
		l.fleet.hand(n, -1, -l.tokens)
	}
	l.fleet, l.nodes = nil, nil
	return true
}

// hand changes what a node has in flight; neither count may fall below zero.
func (f *Fleet) hand(node int32, sessions, tokens int) {
	n := &f.nodes[node]
	n.inFlight += sessions
	n.kvTokens += tokens
	if n.inFlight < 0 || n.kvTokens < 0 {
		panic("BUG: more work released on node " + n.id + " than was reserved")
	}
}
