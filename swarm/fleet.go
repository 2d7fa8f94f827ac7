package swarm

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// A Fleet is what changes from second to second: each node's last sample, what
// the gateway measured of it, and the work it has in flight there. It outlives
// plans. Routers compiled for it read it without looking up names.
//
// A Fleet and its Routers and Leases are not safe for concurrent use; the
// owner serialises them, choosing and reserving in one step, so that
// simultaneous requests see one another.
type Fleet struct {
	base   string // the model that NodeState.Served speaks of
	ids    map[string]int32
	models map[string]int32
	nodes  []fleetNode
	vitals []vitals // by node, side by side: what the classic price reads

	pricing pricing // scratch space of the adaptive router
	weave   weave   // and of the one that assembles chains
}

type fleetNode struct {
	id      string
	state   NodeState
	seenAt  time.Time
	sampled bool // a sample came since it joined
	signals Signals
	held    []heldRange // merged, by model, then layer
	speaks  bool        // the sample says what the node holds

	inFlight int
	kvTokens int
}

// A heldRange is a maximal run of layers of one model (by index) that a node
// holds; the adaptive router may run any part of it.
type heldRange struct {
	model       int32
	first, last int32
}

// NewFleet returns a fleet without nodes. Base names the model that the list
// NodeState.Served speaks of; with "" that list is ignored.
func NewFleet(base string) *Fleet {
	return &Fleet{base: base, ids: map[string]int32{}, models: map[string]int32{}}
}

// FleetFromState returns a fleet that has just observed every sample of the
// state; the base model is the plan's.
func FleetFromState(st State, now time.Time) (*Fleet, error) {
	f := NewFleet(st.base())
	for _, id := range slices.Sorted(maps.Keys(st.Nodes)) {
		if err := f.Observe(st.Nodes[id], now); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// index finds a node, or adds it: alive, unmeasured, holding nothing known.
func (f *Fleet) index(id string) int32 {
	if i, ok := f.ids[id]; ok {
		return i
	}
	i := int32(len(f.nodes))
	f.ids[id] = i
	f.nodes = append(f.nodes, fleetNode{id: id})
	f.vitals = append(f.vitals, vitals{})
	f.set(i, NodeState{ID: id})
	return i
}

// set is the one place where a node's state changes.
func (f *Fleet) set(i int32, state NodeState) {
	f.nodes[i].state = state
	f.vitals[i] = state.vitals()
}

func (f *Fleet) model(id string) int32 {
	if i, ok := f.models[id]; ok {
		return i
	}
	i := int32(len(f.models))
	f.models[id] = i
	return i
}

// Observe takes a node's sample, as of now. A sample that Validate refuses is
// returned as that error and changes nothing.
func (f *Fleet) Observe(state NodeState, now time.Time) error {
	if err := state.Validate(); err != nil {
		return err
	}
	i := f.index(state.ID)
	n := &f.nodes[i]
	same := n.sampled && slices.Equal(n.state.Served, state.Served) && slices.Equal(n.state.Fragments, state.Fragments)
	f.set(i, state)
	n.seenAt, n.sampled = now, true
	if !same {
		f.hold(n)
	}
	return nil
}

// hold merges a sample's fragments, once per change rather than once per
// request.
func (f *Fleet) hold(n *fleetNode) {
	n.speaks = n.state.Served != nil || n.state.Fragments != nil
	n.held = n.held[:0]
	if f.base != "" {
		for _, r := range n.state.Served {
			n.held = append(n.held, heldRange{f.model(f.base), int32(r.First), int32(r.Last)})
		}
	}
	for _, fr := range n.state.Fragments {
		n.held = append(n.held, heldRange{f.model(fr.Model), int32(fr.Layers.First), int32(fr.Layers.Last)})
	}
	slices.SortFunc(n.held, func(a, b heldRange) int {
		return cmp.Or(cmp.Compare(a.model, b.model), cmp.Compare(a.first, b.first), cmp.Compare(a.last, b.last))
	})
	merged := n.held[:0]
	for _, r := range n.held {
		if k := len(merged) - 1; k >= 0 && merged[k].model == r.model && r.first <= merged[k].last+1 {
			merged[k].last = max(merged[k].last, r.last)
			continue
		}
		merged = append(merged, r)
	}
	n.held = merged
}

// Signal takes what the gateway measured of a node. Signals that Validate
// refuses are returned as that error and change nothing.
func (f *Fleet) Signal(id string, s Signals) error {
	if err := s.Validate(id); err != nil {
		return err
	}
	f.nodes[f.index(id)].signals = s
	return nil
}

// MarkDead makes a node unusable until its next living sample.
func (f *Fleet) MarkDead(id string) {
	i := f.index(id)
	state := f.nodes[i].state
	state.Dead = true
	f.set(i, state)
}

// Forget drops all that is known of a node: it left, or comes back as a new
// incarnation. Work in flight on it still counts until its lease is released.
func (f *Fleet) Forget(id string) {
	i, ok := f.ids[id]
	if !ok {
		return
	}
	n := &f.nodes[i]
	*n = fleetNode{id: id, inFlight: n.inFlight, kvTokens: n.kvTokens}
	f.set(i, NodeState{ID: id})
}

// A NodeView is what a Fleet knows of one node.
type NodeView struct {
	State    NodeState
	Signals  Signals
	SeenAt   time.Time // of the last sample; zero when none came
	InFlight int       // sessions that hold a lease on the node
	KVTokens int       // KV cells that those sessions asked for
}

// Node returns what is known of a node, and whether it is known at all.
func (f *Fleet) Node(id string) (NodeView, bool) {
	i, ok := f.ids[id]
	if !ok {
		return NodeView{}, false
	}
	n := &f.nodes[i]
	return NodeView{n.state, n.signals, n.seenAt, n.inFlight, n.kvTokens}, true
}

// State copies the samples into a State for the plan, for the functions that
// work on plain values.
func (f *Fleet) State(plan *Plan) State {
	nodes := make(map[string]NodeState, len(f.nodes))
	for i := range f.nodes {
		nodes[f.nodes[i].id] = f.nodes[i].state
	}
	return State{Plan: plan, Nodes: nodes}
}
