package dispatch

import (
	"context"
	"errors"
	"fmt"

	"hecate/internal/gateway/answer"
	"hecate/internal/stage"
	"hecate/swarm"
)

// Rescue replaces failed nodes in a grant. The new route's nodes are reserved
// before the old ones are released. On error the old grant stands.
func (d *Dispatcher) Rescue(_ context.Context, n answer.Need, g answer.Grant, failed []answer.Failure, p answer.Progress) (answer.Grant, answer.RescueKind, error) {
	d.mu.Lock()
	gone := d.condemnLocked(n, failed, true)
	route, err := d.rescueLocked(n, g, failed, p)
	if err != nil {
		d.mu.Unlock()
		d.tell(gone)
		return answer.Grant{}, "", err
	}
	next := d.grantLocked(route, n)
	d.releaseLocked(g)
	d.wakeLocked()
	d.mu.Unlock()
	d.tell(gone)
	return next, kindOf(route), nil
}

func kindOf(r swarm.Route) answer.RescueKind {
	if len(r.Replaced) > 0 {
		return answer.Splice
	}
	return answer.Copy
}

// rescueLocked asks the router. The answer goes on where it stood, so its
// prompt is all that was computed so far.
func (d *Dispatcher) rescueLocked(n answer.Need, g answer.Grant, failed []answer.Failure, p answer.Progress) (swarm.Route, error) {
	if d.mu.router == nil {
		return swarm.Route{}, ErrNoPlan
	}
	victim, ok := d.victimLocked(g.Route, failed)
	if !ok {
		return swarm.Route{}, fmt.Errorf("route %s lost %v, which is not on it: %w", g.Route, failed, swarm.ErrInvalid)
	}
	req := swarm.RescueRequest{
		Adaptive:   d.requestLocked(n, true),
		Prefer:     swarm.PreferSoonest,
		StatesHeld: p.StatesKept,
	}
	req.Adaptive.PromptTokens = p.Tokens
	req.Adaptive.OutputTokens = max(1, n.PromptTokens+n.OutputTokens-p.Tokens)
	if refused(failed) && p.Tokens == n.PromptTokens {
		// Nothing was computed: any route will do, and the one that refused
		// is full or failing, so it is priced out.
		req.Prefer = swarm.PreferCopy
	}
	r, err := d.mu.router.Rescue(g.Route, victim, req, d.cfg.Policy)
	return r.Route, err
}

// victimLocked names one failed node of the route; the router finds others that
// are dead by itself.
func (d *Dispatcher) victimLocked(route swarm.Route, failed []answer.Failure) (string, bool) {
	for _, f := range failed {
		if route.Uses(f.Node) {
			return f.Node, true
		}
	}
	return "", false
}

func refused(failed []answer.Failure) bool {
	for _, f := range failed {
		var e *stage.Error
		if errors.As(f.Err, &e) {
			return true
		}
	}
	return false
}
