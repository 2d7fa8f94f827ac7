package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hecate/internal/gateway/answer"
	"hecate/swarm"
)

// ErrNoPlan: nothing was planned yet.
var ErrNoPlan = fmt.Errorf("there is no plan yet: %w", swarm.ErrNoRoute)

// Choose reserves the cheapest route now.
func (d *Dispatcher) Choose(_ context.Context, n answer.Need) (answer.Grant, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.chooseLocked(n)
}

func (d *Dispatcher) chooseLocked(n answer.Need) (answer.Grant, error) {
	if d.mu.router == nil {
		return answer.Grant{}, ErrNoPlan
	}
	route, err := d.mu.router.Choose(n.Model, d.requestLocked(n, false), d.cfg.Policy)
	if err != nil {
		err = lacking(err)
		if errors.Is(err, ErrFull) {
			d.revokeLocked()
		}
		return answer.Grant{}, err
	}
	return d.grantLocked(route, n), nil
}

// ChooseAll reserves routes for all answers of a request, or none: requests that
// held some and waited for more would wait for each other.
func (d *Dispatcher) ChooseAll(_ context.Context, n answer.Need) ([]answer.Grant, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	grants := make([]answer.Grant, max(1, n.Choices))
	for i := range grants {
		g, err := d.chooseLocked(n)
		if err != nil {
			for _, g := range grants[:i] {
				d.undoLocked(g)
			}
			if i > 0 && errors.Is(err, ErrFull) {
				err = fmt.Errorf("%w: %d of %d: %w", ErrNotTogether, i, len(grants), err)
			}
			return nil, err
		}
		grants[i] = g
	}
	return grants, nil
}

// What Choose fails with, besides swarm.ErrNoRoute alone for a lack of nodes.
// Both are swarm.ErrNoRoute too.
var (
	// ErrFull: copies live, but none has room for the request now.
	ErrFull = answer.ErrFull
	// ErrNotTogether: there is room for some answers of the request, not for
	// all at once. It is ErrFull too.
	ErrNotTogether = errors.New("not all answers find room at once")
	// ErrTooLarge: no copy could ever have room for the request.
	ErrTooLarge = errors.New("no copy is large enough")
)

// lacking names what waiting could help with.
func lacking(err error) error {
	var no *swarm.NoRouteError
	if !errors.As(err, &no) {
		return err
	}
	switch no.Lack {
	case swarm.LackRoom:
		return fmt.Errorf("%w: %w", ErrFull, err)
	case swarm.LackSize:
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return err
}

// requestLocked words a need for the router.
func (d *Dispatcher) requestLocked(n answer.Need, rescue bool) swarm.AdaptiveRequest {
	rescue = rescue || n.Rescue
	d.focusLocked(focus{n.Model, askerOf(n, rescue)})
	window := swarm.Layers(0, n.Layers-1)
	d.mu.next++
	return swarm.AdaptiveRequest{
		Window:       &window,
		PromptTokens: n.PromptTokens,
		OutputTokens: swarm.ExpectedTokens(n.OutputTokens, swarm.Reading{}),
		KVTokens:     n.Room(),
		Rescue:       rescue,
		Now:          time.Now(),
		Draw:         d.mu.next * 0x9E3779B97F4A7C15,
	}
}

func (d *Dispatcher) grantLocked(route swarm.Route, n answer.Need) answer.Grant {
	d.mu.next++
	// Cells are kept account of by model, in rooms; the fleet counts sessions.
	l := lease{held: d.mu.fleet.Reserve(route, 0), model: n.Model, cells: n.Room()}
	now := time.Now()
	l.nodes = nodesOf(route.Stages)
	for _, node := range l.nodes {
		b := d.bookLocked(node)
		b.circuit.Allow(now)
		b.room(l.model).take(l.cells)
		b.room(l.model).expect(d.mu.next, n.Next)
		d.signalLocked(node, b, now)
	}
	d.mu.leases[d.mu.next] = l
	d.crowdLocked(route)
	return answer.Grant{Route: route, Token: d.mu.next}
}

// nodesOf names the nodes of some stages, each once. Every layer of a node has as many
// cells, so the stages of one answer, which share no layer, take no more of them
// together than one does.
func nodesOf(stages []swarm.Stage) []string {
	nodes := make([]string, 0, len(stages))
	for _, s := range stages {
		if !slices.Contains(nodes, s.Node) {
			nodes = append(nodes, s.Node)
		}
	}
	return nodes
}

// Release gives back what a grant reserved, once.
func (d *Dispatcher) Release(g answer.Grant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.releaseLocked(g)
	d.wakeLocked()
}

func (d *Dispatcher) releaseLocked(g answer.Grant) {
	d.endLocked(g, func(r *room, cells int, now time.Time) { r.give(cells, now) })
}

// undoLocked is releaseLocked for a grant that nobody has seen: no node can have
// anything of it.
func (d *Dispatcher) undoLocked(g answer.Grant) {
	d.endLocked(g, func(r *room, cells int, _ time.Time) { r.take(-cells) })
}

func (d *Dispatcher) endLocked(g answer.Grant, give func(*room, int, time.Time)) {
	l, ok := d.mu.leases[g.Token]
	if !ok {
		panic("BUG: a reservation released twice")
	}
	delete(d.mu.leases, g.Token)
	l.held.Release()
	now := time.Now()
	for _, node := range l.nodes {
		b := d.bookLocked(node)
		b.circuit.Abandon()
		give(b.room(l.model), l.cells, now)
		b.room(l.model).expect(g.Token, 0)
		d.signalLocked(node, b, now)
	}
}

// Explain says what Choose would do now, and why.
func (d *Dispatcher) Explain(n answer.Need) (swarm.Explanation, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.router == nil {
		return swarm.Explanation{}, ErrNoPlan
	}
	return d.mu.router.Explain(n.Model, d.requestLocked(n, false), d.cfg.Policy)
}

// Around reserves another route for the same need, without a node that is alive
// but slow. Nobody is blamed.
func (d *Dispatcher) Around(n answer.Need, route swarm.Route, slow string) (answer.Grant, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.router == nil {
		return answer.Grant{}, ErrNoPlan
	}
	req := swarm.RescueRequest{Adaptive: d.requestLocked(n, false), Prefer: swarm.PreferCopy}
	r, err := d.mu.router.Rescue(route, slow, req, d.cfg.Policy)
	if err != nil {
		return answer.Grant{}, err
	}
	return d.grantLocked(r.Route, n), nil
}
