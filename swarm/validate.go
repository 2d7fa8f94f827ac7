package swarm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

var (
	// ErrUnsound: a plan contradicts itself or a budget. It must not be used.
	ErrUnsound = errors.New("plan is unsound")
	// ErrShort: a plan is sound but does not keep what was asked for: a base
	// model has fewer copies than configured. It may be used, and says what is
	// missing.
	ErrShort = errors.New("plan is short of copies")
)

// A PlanError lists every fault that was found in a plan. It matches
// ErrUnsound, or ErrShort when missing copies are all that is wrong.
type PlanError struct {
	Kind   error
	Faults []string
}

func (e *PlanError) Error() string {
	const most = 12
	shown := e.Faults[:min(most, len(e.Faults))]
	text := e.Kind.Error() + ": " + strings.Join(shown, "; ")
	if more := len(e.Faults) - len(shown); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// Unwrap makes errors.Is find the kind.
func (e *PlanError) Unwrap() error { return e.Kind }

// Validate checks a plan from its profiles and models up, with nothing of the
// planner's own bookkeeping: that it is Sound, and that every base model has
// as many copies as its spec asks for, so that any copies-1 nodes may die and
// every layer still has a living holder. All faults are listed at once.
func (p *Plan) Validate() error {
	if err := p.Sound(); err != nil {
		return err
	}
	var faults []string
	for i := range p.Models {
		m := &p.Models[i]
		if m.Expert {
			continue
		}
		if n := len(p.PipelinesOf(m.ID)); n < m.Copies {
			fault := fmt.Sprintf("model %q has %d of %d copies", m.ID, n, m.Copies)
			if u := p.unplaced(m.ID); u != nil {
				fault += ": " + u.Reason
			}
			faults = append(faults, fault)
		}
	}
	if len(faults) > 0 {
		return &PlanError{ErrShort, faults}
	}
	return nil
}

// Sound checks that a plan is true to itself: ids are unique, every budget
// holds, every pipeline covers its model once over nodes that hold the layers
// for it, every layer lies on as many distinct nodes as there are copies, and
// what the plan says of redundancy, shared nodes, hurting deaths, missing
// copies and idle nodes is so. All faults are listed at once.
func (p *Plan) Sound() error {
	c := &planCheck{plan: p, holders: map[string][][]string{}}
	c.inventory()
	if len(c.faults) == 0 {
		c.budgets()
		c.pipelines()
		c.copies()
		c.statements()
	}
	if len(c.faults) == 0 && p.Hash != p.contentHash() {
		c.fault("the hash is not that of the content")
	}
	if len(c.faults) > 0 {
		return &PlanError{ErrUnsound, c.faults}
	}
	return nil
}

func (p *Plan) unplaced(model string) *Unplaced {
	for i := range p.Unplaced {
		if p.Unplaced[i].Model == model {
			return &p.Unplaced[i]
		}
	}
	return nil
}

// A planCheck gathers faults. It derives everything from Models, Nodes and
// Pipelines, and compares the rest of the plan with that.
type planCheck struct {
	plan    *Plan
	faults  []string
	holders map[string][][]string // by model and layer, from the fragments
}

func (c *planCheck) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// inventory checks models, nodes and fragments one by one and fills holders.
// Everything after it may rely on ids and ranges.
func (c *planCheck) inventory() {
	p := c.plan
	if p.Generation < 1 {
		c.fault("generation %d is below 1", p.Generation)
	}
	for i := range p.Models {
		m := &p.Models[i]
		if err := m.Validate(); err != nil {
			c.fault("%v", err)
			continue
		}
		if m.Copies < 1 {
			c.fault("model %q asks for %d copies", m.ID, m.Copies)
		}
		if i > 0 && p.Models[i-1].ID >= m.ID {
			c.fault("models are not in id order at %q", m.ID)
		}
		c.holders[m.ID] = make([][]string, m.Layers)
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if err := n.Profile.Validate(); err != nil {
			c.fault("%v", err)
		}
		if i > 0 && p.Nodes[i-1].Profile.ID >= n.Profile.ID {
			c.fault("nodes are not in id order at %q", n.Profile.ID)
		}
		for _, f := range n.Fragments {
			c.fragment(n.Profile.ID, f)
		}
	}
}

func (c *planCheck) fragment(node string, f PlacedFragment) {
	layers, ok := c.holders[f.Model]
	switch {
	case !ok:
		c.fault("node %q holds layers of an unknown model %q", node, f.Model)
		return
	case !f.Layers.Valid() || f.Layers.Last >= len(layers):
		c.fault("node %q holds layers %s of %q, which has %d", node, f.Layers, f.Model, len(layers))
		return
	}
	for l := f.Layers.First; l <= f.Layers.Last; l++ {
		// Nodes come in id order, so a second entry of one node is the last.
		if h := layers[l]; len(h) > 0 && h[len(h)-1] == node {
			c.fault("node %q holds layer %d of %q twice", node, l, f.Model)
			continue
		}
		layers[l] = append(layers[l], node)
	}
}

// budgets adds up what every node is given, layer by layer.
func (c *planCheck) budgets() {
	for i := range c.plan.Nodes {
		n := &c.plan.Nodes[i]
		var used int64
		for _, f := range n.Fragments {
			m, _ := c.plan.Model(f.Model)
			kv := mulBytes(m.KVBytes, int64(m.ContextTokens))
			for l := f.Layers.First; l <= f.Layers.Last; l++ {
				used = addBytes(used, addBytes(m.LayerWeight(l), kv))
			}
		}
		budget := n.Profile.MemoryBytes
		if used != n.UsedBytes {
			c.fault("node %q uses %d bytes, not %d as stated", n.Profile.ID, used, n.UsedBytes)
		}
		if n.HeadroomBytes < 0 || used > budget-n.HeadroomBytes {
			c.fault("node %q is over its budget: %d bytes used and %d of headroom in %d", n.Profile.ID, used, n.HeadroomBytes, budget)
		}
		if budget > 0 && n.Share != float64(n.UsedBytes)/float64(budget) {
			c.fault("node %q states a share of %v", n.Profile.ID, n.Share)
		}
	}
}

// pipelines checks that every copy covers its model once, in order, and that
// each stage's node holds the layers for serving, not as a spare.
func (c *planCheck) pipelines() {
	ids := map[int]bool{}
	for _, pl := range c.plan.Pipelines {
		if ids[pl.ID] {
			c.fault("pipeline %d exists twice", pl.ID)
		}
		ids[pl.ID] = true
		layers, ok := c.holders[pl.Model]
		if !ok {
			c.fault("pipeline %d is of an unknown model %q", pl.ID, pl.Model)
			continue
		}
		next := 0
		for _, st := range pl.Stages {
			if st.Layers.First != next || st.Layers.Last < next {
				c.fault("pipeline %d: stage %s does not continue at layer %d", pl.ID, st, next)
			}
			next = st.Layers.Last + 1
			if !c.serves(st, pl.Model) {
				c.fault("pipeline %d: node %q does not hold layers %s of %q for serving", pl.ID, st.Node, st.Layers, pl.Model)
			}
		}
		if next != len(layers) {
			c.fault("pipeline %d ends at layer %d of %d", pl.ID, next, len(layers))
		}
	}
}

func (c *planCheck) serves(st Stage, model string) bool {
	n, _ := c.plan.Node(st.Node)
	return slices.ContainsFunc(n.Fragments, func(f PlacedFragment) bool {
		return f.Model == model && !f.Spare && f.Layers.Covers(st.Layers)
	})
}

// copies counts: placed and missing copies make up what was asked for, and
// every layer lies on as many distinct nodes as there are copies.
func (c *planCheck) copies() {
	for i := range c.plan.Models {
		m := &c.plan.Models[i]
		placed, missing := len(c.plan.PipelinesOf(m.ID)), 0
		if u := c.plan.unplaced(m.ID); u != nil {
			missing = u.Copies
			if u.Reason == "" || u.ShortfallBytes < 0 {
				c.fault("model %q misses copies without a reason", m.ID)
			}
		}
		if placed+missing != m.Copies {
			c.fault("model %q: %d copies placed and %d missing do not make %d", m.ID, placed, missing, m.Copies)
		}
		for l, h := range c.holders[m.ID] {
			if len(h) < placed {
				c.fault("layer %d of %q lies on %d nodes (%s) for %d copies", l, m.ID, len(h), strings.Join(h, ", "), placed)
			}
		}
	}
}

// statements compares what the plan says of itself with what is so.
func (c *planCheck) statements() {
	p := c.plan
	for id, layers := range c.holders {
		said := p.Redundancy[id]
		if len(said) == 0 && len(p.PipelinesOf(id)) == 0 {
			continue
		}
		for l, h := range layers {
			if !slices.Equal(said[l], h) {
				c.fault("redundancy of %q names %v for layer %d, not %v", id, said[l], l, h)
			}
		}
	}
	c.shared()
	c.hurting()
	c.idle()
	slices.Sort(c.faults)
}

func (c *planCheck) shared() {
	want := map[string][]int{}
	for _, pl := range c.plan.Pipelines {
		for _, st := range pl.Stages {
			key := st.Node + "\x00" + pl.Model
			if !slices.Contains(want[key], pl.ID) {
				want[key] = append(want[key], pl.ID)
			}
		}
	}
	maps.DeleteFunc(want, func(_ string, ids []int) bool { return len(ids) < 2 })
	said := map[string][]int{}
	for _, s := range c.plan.SharedNodes {
		said[s.Node+"\x00"+s.Model] = s.Pipelines
	}
	if !maps.EqualFunc(want, said, slices.Equal[[]int]) {
		c.fault("shared nodes are not as stated")
	}
}

func (c *planCheck) hurting() {
	want, said := map[string]bool{}, map[string]bool{}
	for id, layers := range c.holders {
		if len(c.plan.PipelinesOf(id)) == 0 {
			continue
		}
		for l, h := range layers {
			if len(h) == 1 {
				want[fmt.Sprintf("%s of %s without %s", LayerRange{l, l}, id, h[0])] = true
			}
		}
	}
	for _, h := range c.plan.Hurting {
		for _, r := range h.Layers {
			if !r.Valid() {
				c.fault("the deaths that hurt name layers %s", r)
				continue
			}
			for l := r.First; l <= r.Last; l++ {
				said[fmt.Sprintf("%s of %s without %s", LayerRange{l, l}, h.Model, h.Node)] = true
			}
		}
	}
	if !maps.Equal(want, said) {
		c.fault("the deaths that hurt are not as stated")
	}
}

func (c *planCheck) idle() {
	serving := map[string]bool{}
	for _, pl := range c.plan.Pipelines {
		for _, st := range pl.Stages {
			serving[st.Node] = true
		}
	}
	said := map[string]string{}
	for _, i := range c.plan.Idle {
		said[i.Node] = i.Reason
	}
	for i := range c.plan.Nodes {
		id := c.plan.Nodes[i].Profile.ID
		if !serving[id] && said[id] == "" {
			c.fault("node %q is idle without a reason", id)
		}
		if _, ok := said[id]; ok && serving[id] {
			c.fault("node %q is called idle and serves", id)
		}
	}
}
