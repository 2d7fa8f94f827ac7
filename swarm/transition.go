package swarm

import (
	"fmt"
	"maps"
	"slices"
)

// A StepKind is what one step of a transition does.
type StepKind string

const (
	StepLoad   StepKind = "load"   // the node fetches and loads the layers
	StepMove   StepKind = "move"   // sessions that run the layers on the node go on at another
	StepUnload StepKind = "unload" // the node frees the layers
)

// A TransitionStep is one thing to do, finished before the next begins.
type TransitionStep struct {
	Kind   StepKind   `json:"kind"`
	Node   string     `json:"node"`
	Model  string     `json:"model"`
	Layers LayerRange `json:"layers"`
	To     string     `json:"to,omitempty"`    // of a move: who goes on; "" when nobody can or the model is given up
	Bytes  int64      `json:"bytes,omitempty"` // memory taken by a load, freed by an unload
}

func (s TransitionStep) String() string {
	text := fmt.Sprintf("%s %s %s[%s]", s.Kind, s.Node, s.Model, s.Layers)
	if s.Kind == StepMove {
		to := s.To
		if to == "" {
			to = "nobody"
		}
		text += " to " + to
	}
	return text
}

// An Interruption is a time in which layers of a model have no living holder:
// from after step From until after step To of the transition.
type Interruption struct {
	Model  string     `json:"model"`
	Layers LayerRange `json:"layers"`
	From   int        `json:"from"` // the unload that begins it; -1: it was so before the first step
	To     int        `json:"to"`   // the load that ends it; the number of steps when nothing does
	Bytes  int64      `json:"bytes"`
}

// A TransitionPlan leads from one plan to another in order.
type TransitionPlan struct {
	Steps []TransitionStep `json:"steps"`

	// Interruptions is empty when an order was found in which every layer of
	// every model of both plans keeps a living holder throughout.
	Interruptions []Interruption `json:"interruptions,omitempty"`

	// Thinnest is the fewest living holders that a layer of a model of both
	// plans has at any time, 0 with an interruption. Without such a model it is
	// the number of living nodes.
	Thinnest int `json:"thinnest"`

	LoadedBytes int64 `json:"loaded_bytes"` // weights that are fetched
}

// Transition orders the steps from one plan to another: loads, moves of
// sessions, unloads. After each step every node is within its budget and every
// layer of a model that both plans serve keeps as many holders as both plans
// promise, or, where budgets are too tight for that, at least one. Where even
// that is impossible, the layers with the fewest bytes to load again are
// without a holder for as short as possible, and the result says so.
//
// Nodes that only the old plan has are leaving and still serve; those named in
// dead do not, and hold nothing.
func Transition(from, to *Plan, dead ...string) TransitionPlan {
	t := newTransit(from, to, dead)
	for t.advance() {
	}
	t.clearOut()
	return t.result()
}

// A spot is one layer of one model on one node.
type spot struct {
	node, model string
	layer       int
}

func compareSpots(a, b spot) int {
	return slices.Compare([]string{a.node, a.model}, []string{b.node, b.model})*4 + compareInt(a.layer, b.layer)
}

func compareInt(a, b int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// A layerKey is one layer of one model, wherever it lies.
type layerKey struct {
	model string
	layer int
}

// A transit is a transition while it is being worked out.
type transit struct {
	from, to *Plan
	have     map[spot]bool
	want     map[spot]bool
	serving  map[spot]bool // sessions may run here
	loaned   map[spot]bool // loaded only to keep a layer alive meanwhile
	holders  map[layerKey]int
	promise  map[layerKey]int // holders that both plans give the layer; absent: not in both
	free     map[string]int64
	pending  map[string][]spot        // by node: wanted and not loaded, most urgent first
	unwanted map[string]map[spot]bool // by node: loaded and not wanted
	steps    []TransitionStep
	out      TransitionPlan
	thin     int
	open     map[layerKey]int // interruptions by the step that began them
}

func newTransit(from, to *Plan, dead []string) *transit {
	t := &transit{
		from: from, to: to,
		have: map[spot]bool{}, want: map[spot]bool{}, serving: map[spot]bool{}, loaned: map[spot]bool{},
		holders: map[layerKey]int{}, promise: map[layerKey]int{}, free: map[string]int64{}, open: map[layerKey]int{},
		pending: map[string][]spot{}, unwanted: map[string]map[spot]bool{},
	}
	gone := map[string]bool{}
	for _, id := range dead {
		gone[id] = true
	}
	for _, p := range []*Plan{from, to} { // the new plan's budgets override
		for i := range p.Nodes {
			if n := &p.Nodes[i]; !gone[n.Profile.ID] {
				t.free[n.Profile.ID] = n.Profile.MemoryBytes - n.HeadroomBytes
			}
		}
	}
	spotsOf(from, gone, t.have)
	spotsOf(to, gone, t.want)
	for s := range t.have {
		if !t.want[s] {
			t.unwant(s)
		}
		t.free[s.node] -= t.need(s)
		t.holders[layerKey{s.model, s.layer}]++
	}
	for s := range t.want {
		if !t.have[s] {
			t.pending[s.node] = append(t.pending[s.node], s)
		}
	}
	t.promises()
	for _, pl := range from.Pipelines {
		for _, st := range pl.Stages {
			for l := st.Layers.First; l <= st.Layers.Last; l++ {
				if s := (spot{st.Node, pl.Model, l}); t.have[s] {
					t.serving[s] = true
				}
			}
		}
	}
	urgency := t.urgency()
	for _, spots := range t.pending {
		slices.SortFunc(spots, urgency)
	}
	return t
}

func (t *transit) unwant(s spot) {
	if t.unwanted[s.node] == nil {
		t.unwanted[s.node] = map[spot]bool{}
	}
	t.unwanted[s.node][s] = true
}

func spotsOf(p *Plan, gone map[string]bool, into map[spot]bool) {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if gone[n.Profile.ID] {
			continue
		}
		for _, f := range n.Fragments {
			for l := f.Layers.First; l <= f.Layers.Last; l++ {
				into[spot{n.Profile.ID, f.Model, l}] = true
			}
		}
	}
}

// promises notes how many copies both plans keep of each model.
func (t *transit) promises() {
	t.thin = len(t.free)
	for i := range t.to.Models {
		m := &t.to.Models[i]
		k := min(len(t.from.PipelinesOf(m.ID)), len(t.to.PipelinesOf(m.ID)))
		for l := range m.Layers {
			if k == 0 {
				break
			}
			key := layerKey{m.ID, l}
			t.promise[key] = k
			t.thin = min(t.thin, t.holders[key])
			if t.holders[key] == 0 {
				t.open[key] = -1
			}
		}
	}
}

// urgency orders loads: layers with the fewest holders first, then what
// pipelines need before spares, then by node, model and layer.
func (t *transit) urgency() func(a, b spot) int {
	needed := map[spot]bool{}
	for _, pl := range t.to.Pipelines {
		for _, st := range pl.Stages {
			for l := st.Layers.First; l <= st.Layers.Last; l++ {
				needed[spot{st.Node, pl.Model, l}] = true
			}
		}
	}
	bare := maps.Clone(t.holders)
	return func(a, b spot) int {
		x, y := bare[layerKey{a.model, a.layer}] == 0, bare[layerKey{b.model, b.layer}] == 0
		switch {
		case x != y:
			return truth(x)
		case needed[a] != needed[b]:
			return truth(needed[a])
		}
		return compareSpots(a, b)
	}
}

// truth sorts what holds first.
func truth(first bool) int {
	if first {
		return -1
	}
	return 1
}

// spec is the model as the new plan knows it, else as the old one does.
func (t *transit) spec(model string) ModelSpec {
	if m, ok := t.to.Model(model); ok {
		return m
	}
	m, _ := t.from.Model(model)
	return m
}

func (t *transit) need(s spot) int64 {
	m := t.spec(s.model)
	if s.layer >= m.Layers { // the model became shorter: what lies there is of the old one
		m, _ = t.from.Model(s.model)
	}
	return m.LayerNeed(s.layer)
}
