package admission

import (
	"context"
	"errors"
	"fmt"

	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/dispatch"
)

// errAlone: a request with several choices does not fit although nothing else of
// its model runs. It would wait in vain, and others behind it.
var errAlone = errors.New("not all choices find room, although nothing else is running")

// alone tells a lack of room that will pass from one that will not.
func alone(q *queue, err error) error {
	if errors.Is(err, dispatch.ErrNotTogether) && q.pace.answers == 0 {
		return fmt.Errorf("%w: %s", errAlone, err.Error()) // not wrapped: it will not pass
	}
	return err
}

// setAsideLocked keeps what was granted to a request beyond its first choice
// until it asks for it, or is over.
func (a *Admission) setAsideLocked(w *waiter, rest []*ticket) {
	if len(rest) == 0 {
		return
	}
	request := w.need.Request
	a.mu.claims[request] = append(a.mu.claims[request], rest...)
	context.AfterFunc(w.ctx, func() { a.forfeit(request) })
}

// claimLocked gives a choice what was granted together with an earlier one.
func (a *Admission) claimLocked(n answer.Need) *ticket {
	rest := a.mu.claims[n.Request]
	if n.Choices < 2 || len(rest) == 0 {
		return nil
	}
	if a.mu.claims[n.Request] = rest[1:]; len(rest) == 1 {
		delete(a.mu.claims, n.Request)
	}
	return rest[0]
}

func (a *Admission) forfeit(request string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.mu.claims[request] {
		a.releaseLocked(t)
	}
	delete(a.mu.claims, request)
}
