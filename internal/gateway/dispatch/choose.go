package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hecate/internal/gateway/answer"
	"hecate/internal/stage"
	"hecate/swarm"
)

// ErrNoPlan: nothing was planned yet.
var ErrNoPlan = fmt.Errorf("there is no plan yet: %w", swarm.ErrNoRoute)

// Choose reserves the cheapest route now.
func (d *Dispatcher) Choose(_ context.Context, n answer.Need) (answer.Grant, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.router == nil {
		return answer.Grant{}, ErrNoPlan
	}
	route, err := d.mu.router.Choose(n.Model, d.requestLocked(n, false), d.cfg.Policy)
	if err != nil && d.fullLocked(n) {
		return answer.Grant{}, fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err != nil {
		return answer.Grant{}, err
	}
	return d.grantLocked(route, n), nil
}

// requestLocked words a need for the router.
func (d *Dispatcher) requestLocked(n answer.Need, rescue bool) swarm.AdaptiveRequest {
	window := swarm.Layers(0, n.Layers-1)
	d.mu.next++
	return swarm.AdaptiveRequest{
		Window:       &window,
		PromptTokens: n.PromptTokens,
		OutputTokens: swarm.ExpectedTokens(n.OutputTokens, swarm.Reading{}),
		KVTokens:     n.PromptTokens + n.OutputTokens,
		Rescue:       rescue,
		Now:          time.Now(),
		Draw:         d.mu.next * 0x9E3779B97F4A7C15,
	}
}

func (d *Dispatcher) grantLocked(route swarm.Route, n answer.Need) answer.Grant {
	d.mu.next++
	d.mu.leases[d.mu.next] = d.mu.fleet.Reserve(route, n.PromptTokens+n.OutputTokens)
	now := time.Now()
	for _, s := range route.Stages {
		b := d.bookLocked(s.Node)
		b.circuit.Allow(now)
		d.signalLocked(s.Node, b, now)
	}
	return answer.Grant{Route: route, Token: d.mu.next}
}

// Release gives back what a grant reserved.
func (d *Dispatcher) Release(g answer.Grant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.releaseLocked(g)
	d.wakeLocked()
}

func (d *Dispatcher) releaseLocked(g answer.Grant) {
	lease := d.mu.leases[g.Token]
	if lease == nil {
		panic("BUG: a reservation released twice")
	}
	delete(d.mu.leases, g.Token)
	lease.Release()
	for _, s := range g.Route.Stages {
		d.bookLocked(s.Node).circuit.Abandon()
	}
}

// blameLocked takes a failure into the books. A node that had no room, or was
// paused, did nothing wrong.
func (d *Dispatcher) blameLocked(f answer.Failure, now time.Time) {
	var refusal *stage.Error
	if errors.As(f.Err, &refusal) {
		switch refusal.Code {
		case stage.CodeNoCells, stage.CodePaused, stage.CodeNotHeld:
			return
		}
	}
	b := d.bookLocked(f.Node)
	b.circuit.Failure(now)
	d.signalLocked(f.Node, b, now)
}

// ErrFull: copies live, but none has room for the request now.
var ErrFull = errors.New("no copy has room now")

// fullLocked tells a lack of room from a lack of nodes: with a request that
// needs next to nothing there would be a route.
func (d *Dispatcher) fullLocked(n answer.Need) bool {
	small := d.requestLocked(n, false)
	small.KVTokens = 1
	_, err := d.mu.router.Choose(n.Model, small, d.cfg.Policy)
	return err == nil
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
