package dispatch

import (
	"errors"
	"slices"

	"hecate/internal/gateway/answer"
	"hecate/internal/stage"
	"hecate/swarm"
)

// yielding says that no node failed: one is to give layers up, or has done so. It
// may serve others.
func yielding(failed []answer.Failure) bool {
	return !slices.ContainsFunc(failed, func(f answer.Failure) bool {
		var refusal *stage.Error
		gaveUp := f.Kind == answer.Refused && errors.As(f.Err, &refusal) && refusal.Code == stage.CodeNotHeld
		return f.Kind != answer.Yielding && !gaveUp
	})
}

// elsewhereLocked is a whole new route for the rest of an answer, which may use
// the yielding node for what it keeps. The fleet knows what nodes still offer.
func (d *Dispatcher) elsewhereLocked(n answer.Need, p answer.Progress) (swarm.Route, error) {
	if d.mu.router == nil {
		return swarm.Route{}, ErrNoPlan
	}
	req := d.requestLocked(n, true)
	req.PromptTokens = p.Tokens
	req.OutputTokens = max(1, n.PromptTokens+n.OutputTokens-p.Tokens)
	policy := d.cfg.Policy
	policy.Choice, policy.Explore = swarm.Cheapest, -1 // a running answer takes no chances
	return d.mu.router.Choose(n.Model, req, policy)
}
