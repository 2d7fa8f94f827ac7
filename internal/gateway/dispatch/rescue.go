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
	if !p.Again {
		d.condemnLocked(n, failed, true)
	}
	settle := d.lendLocked(p.Standbys)
	route, kind, err := d.wayOnLocked(n, g, failed, p)
	settle(route, err)
	if err != nil {
		err = d.crowdedLocked(n, err)
		d.revokeLocked() // it may have been for want of room
		d.mu.Unlock()
		return answer.Grant{}, "", err
	}
	next := d.grantLocked(route, n)
	d.releaseLocked(g)
	d.wakeLocked()
	d.mu.Unlock()
	return next, kind, nil
}

// crowdedLocked says so if the way on fails only because others have the room.
func (d *Dispatcher) crowdedLocked(n answer.Need, err error) error {
	if d.mu.router == nil {
		return err
	}
	var no *swarm.NoRouteError
	if _, why := d.mu.router.Choose(n.Model, d.requestLocked(n, true), d.cfg.Policy); errors.As(why, &no) && no.Lack == swarm.LackRoom {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// wayOnLocked is the old route, when its nodes are all back, or another.
func (d *Dispatcher) wayOnLocked(n answer.Need, g answer.Grant, failed []answer.Failure, p answer.Progress) (swarm.Route, answer.RescueKind, error) {
	if p.Again && d.wholeLocked(g.Route) {
		return g.Route, answer.Revival, nil
	}
	route, err := d.rescueLocked(n, g, failed, p)
	if err != nil && yielding(failed) {
		route, err = d.elsewhereLocked(n, p)
	}
	return route, kindOf(route), err
}

// wholeLocked says that every node of a route lives and holds its layers, by its
// own newest word.
func (d *Dispatcher) wholeLocked(route swarm.Route) bool {
	if d.mu.router == nil {
		return false
	}
	return swarm.ValidateRoute(route, d.mu.fleet.State(d.mu.router.Plan()), swarm.RouteCheck{ConfirmedOnly: true}) == nil
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
		Warm:       p.Warm,
	}
	req.Adaptive.PromptTokens = p.Tokens
	req.Adaptive.OutputTokens = max(1, n.PromptTokens+n.OutputTokens-p.Tokens)
	if refused(failed) && p.Tokens == n.PromptTokens {
		// Nothing was computed: any route will do, and the one that refused
		// is full or failing, so it is priced out.
		req.Prefer = swarm.PreferCopy
	}
	r, err := d.mu.router.Rescue(g.Route, victim, req, d.cfg.Policy)
	if err == nil && (r.Route.Degraded || len(r.Route.Stages) == 0) {
		// Nobody who is left can go on with this model. Another one is the
		// gateway's to choose, and only before the first token.
		return swarm.Route{}, fmt.Errorf("what is left of route %s answers for another model: %w", g.Route, swarm.ErrUnrecoverable)
	}
	if err == nil && p.StatesKept && len(r.Route.Replaced) > 0 && req.Prefer == swarm.PreferSoonest {
		r.Route = d.keepStagesLocked(g.Route, r.Route, p.Tokens, req.Adaptive.OutputTokens)
	}
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
