package swarm

import "fmt"

// A Lack says what has to change before a route can exist.
type Lack int

const (
	// LackNodes: a copy's nodes are dead, loading or failing.
	LackNodes Lack = iota
	// LackRoom: usable nodes hold every layer, but their KV caches are taken
	// now; the end of other answers helps.
	LackRoom
	// LackSize: no copy of the plan could take the request even with all its
	// nodes in health and all KV caches empty; only another plan helps.
	LackSize
)

func (l Lack) String() string {
	switch l {
	case LackNodes:
		return "nodes"
	case LackRoom:
		return "room"
	case LackSize:
		return "size"
	}
	return fmt.Sprintf("Lack(%d)", int(l))
}

// leniency is what a pricing overlooks, to find out what a lack is due to.
type leniency int

const (
	strict   leniency = iota
	roomless          // KV caches are no obstacle
	emptied           // KV caches count as empty
	hopeful           // and every node as the plan wants it
)

// lack finds out, once there is no route, what the request lacks.
func (p *pricing) lack(m *modelCopies) Lack {
	defer func(before leniency) { p.lenient = before }(p.lenient)
	for _, step := range []struct {
		lenient leniency
		exists  bool
		lack    Lack
	}{
		{roomless, false, LackNodes},
		{emptied, true, LackRoom},
		{hopeful, true, LackNodes},
	} {
		p.lenient = step.lenient
		if p.any(m) == step.exists {
			return step.lack
		}
	}
	return LackSize
}

// any reports whether there is a route of any kind.
func (p *pricing) any(m *modelCopies) bool {
	if _, ok := p.best(m); ok {
		return true
	}
	if p.lenient == hopeful || p.policy.Assemble == AssembleNever || !p.window.Stated() {
		return false // chains are made of what nodes really hold
	}
	w := &p.fleet.weave
	w.collect(p)
	return w.solve(p.window)
}
