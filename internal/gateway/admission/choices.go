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

// joint names what is granted together: a request's answers by one model. When another
// model stands in, those of the first may not be given back yet.
type joint struct{ request, model string }

func jointOf(n answer.Need) joint { return joint{n.Request, n.Model} }

// setAsideLocked keeps what was granted to a request beyond its first choice
// until it asks for it, or is over.
func (a *Admission) setAsideLocked(w *waiter, rest []*ticket) {
	if len(rest) == 0 {
		return
	}
	of := jointOf(w.need)
	a.mu.claims[of] = append(a.mu.claims[of], rest...)
	context.AfterFunc(w.ctx, func() { a.forfeit(of) })
}

// claimLocked gives a choice what was granted together with an earlier one.
func (a *Admission) claimLocked(n answer.Need) *ticket {
	of := jointOf(n)
	rest := a.mu.claims[of]
	if n.Choices < 2 || len(rest) == 0 {
		return nil
	}
	if a.mu.claims[of] = rest[1:]; len(rest) == 1 {
		delete(a.mu.claims, of)
	}
	return rest[0]
}

func (a *Admission) forfeit(of joint) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.mu.claims[of] {
		a.releaseLocked(t)
	}
	delete(a.mu.claims, of)
}
