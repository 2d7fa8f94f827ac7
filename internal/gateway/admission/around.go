package admission

import (
	"fmt"

	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/dispatch"
	"hecate/swarm"
)

// wanting is how many want room that there is not.
func (q *queue) wanting() int {
	n := len(q.waiting) + len(q.pressing)
	if q.wantedAfar() {
		n++ // or more
	}
	return n
}

// Standby reserves room for a shadow, unless somebody waits for room.
func (a *Admission) Standby(n answer.Need, route swarm.Route, stage int) (answer.Standby, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range a.mu.queues {
		if n := q.wanting(); n > 0 {
			return answer.Standby{}, fmt.Errorf("%d requests wait for room: %w", n, dispatch.ErrNoStandby)
		}
	}
	return a.Dispatcher.Standby(n, route, stage)
}

// Widen makes a shadow's room larger, unless somebody waits for room.
func (a *Admission) Widen(token uint64, n answer.Need) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range a.mu.queues {
		if q.wanting() > 0 {
			return false
		}
	}
	return a.Dispatcher.Widen(token, n)
}

// Around reserves a second route for an answer that is kept waiting. Room that
// others wait for is not spent on a second try.
func (a *Admission) Around(n answer.Need, route swarm.Route, slow string) (answer.Grant, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.queueLocked(n.Model)
	if n := q.wanting(); n > 0 {
		return answer.Grant{}, fmt.Errorf("%d requests wait for room: %w", n, dispatch.ErrFull)
	}
	g, err := a.Dispatcher.Around(n, route, slow)
	if err != nil {
		return answer.Grant{}, err
	}
	return a.admitLocked(q, &waiter{need: n}, g).grant(), nil
}
