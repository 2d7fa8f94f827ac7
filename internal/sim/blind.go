package sim

import (
	"math/rand/v2"

	"hecate/swarm"
)

// blind is what the policies have in common that do without package swarm's
// choice: a list of copies, and which nodes are said to be dead. Their rescues
// are the classic ones.
type blind struct {
	gateway *Gateway
	copies  map[string]*copies
	chance  *rand.Rand
}

// copies are one model's copies in pipeline order.
type copies struct {
	pipes []swarm.Pipeline
	nodes [][]int32 // of each stage
	next  int       // of round-robin
}

func newBlind(g *Gateway) blind {
	b := blind{gateway: g, copies: map[string]*copies{}, chance: rand.New(rand.NewPCG(g.scenario.Seed, uint64(g.number)+1))}
	for _, m := range g.scenario.Plan.Models {
		c := &copies{pipes: g.scenario.Plan.PipelinesOf(m.ID)}
		for _, p := range c.pipes {
			var nodes []int32
			for _, s := range p.Stages {
				nodes = append(nodes, g.index[s.Node])
			}
			c.nodes = append(c.nodes, nodes)
		}
		b.copies[m.ID] = c
	}
	return b
}

// living reports whether no node of a copy is known to be dead.
func (b *blind) living(c *copies, i int) bool {
	for _, n := range c.nodes[i] {
		if b.gateway.heard[n].dead {
			return false
		}
	}
	return true
}

func (b *blind) Rescue(j *Job, route swarm.Route, failed string) (swarm.Route, error) {
	return b.gateway.failover(j, route, failed)
}

// from takes the first living copy, beginning with the one at an index.
func (b *blind) from(j *Job, c *copies, first int) (swarm.Route, int, error) {
	for i := range c.pipes {
		at := (first + i) % len(c.pipes)
		if b.living(c, at) {
			return c.route(at), at, nil
		}
	}
	return swarm.Route{}, 0, &swarm.NoRouteError{Model: j.Model, Window: swarm.Unstated(), Furthest: -1, Reason: "no copy lives"}
}

func (c *copies) route(i int) swarm.Route {
	p := &c.pipes[i]
	return swarm.Route{Model: p.Model, PipelineID: p.ID, Stages: p.Stages}
}

type random struct{ blind }

// Route draws a copy; when it is dead it draws again, and after some vain
// draws looks at all of them.
func (r *random) Route(j *Job) (swarm.Route, error) {
	const draws = 16
	c := r.copies[j.Model]
	if len(c.pipes) > 0 {
		for range draws {
			if i := r.chance.IntN(len(c.pipes)); r.living(c, i) {
				return c.route(i), nil
			}
		}
	}
	route, _, err := r.from(j, c, 0)
	return route, err
}

type roundRobin struct{ blind }

func (r *roundRobin) Route(j *Job) (swarm.Route, error) {
	c := r.copies[j.Model]
	route, at, err := r.from(j, c, c.next)
	c.next = at + 1
	return route, err
}

type leastLoaded struct{ blind }

func (l *leastLoaded) Route(j *Job) (swarm.Route, error) {
	c := l.copies[j.Model]
	best, ties, least := -1, 0, 0.0
	for i := range c.pipes {
		load, ok := l.load(c, i)
		switch {
		case !ok || best >= 0 && load > least:
			continue
		case best < 0 || load < least:
			best, ties, least = i, 1, load
		default: // the n-th of equals wins with 1 in n: each wins alike
			ties++
			if l.chance.IntN(ties) == 0 {
				best = i
			}
		}
	}
	if best < 0 {
		route, _, err := l.from(j, c, 0)
		return route, err
	}
	return c.route(best), nil
}

// load is that of a copy's busiest node, if the copy lives.
func (l *leastLoaded) load(c *copies, i int) (float64, bool) {
	var load float64
	for _, n := range c.nodes[i] {
		h := &l.gateway.heard[n]
		if h.dead {
			return 0, false
		}
		load = max(load, h.load)
	}
	return load, true
}
