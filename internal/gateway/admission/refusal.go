package admission

import (
	"fmt"
	"time"

	"hecate/internal/gateway/answer"
)

// ErrRefused is what every Refusal is.
var ErrRefused = answer.ErrRefused

// A Reason says why a request was refused. It stands in headers and metrics.
type Reason string

const (
	QueueFull   Reason = "queue_full"    // too many wait already
	WaitTooLong Reason = "wait_too_long" // it would not have been served in time
	NoRoom      Reason = "no_room"       // it was not served in time
	NotReady    Reason = "not_ready"     // no copy of the model can be used
	TooLarge    Reason = "too_large"     // no copy could ever hold it
)

// Reasons lists all there are; each is counted.
func Reasons() []Reason { return []Reason{QueueFull, WaitTooLong, NoRoom, NotReady, TooLarge} }

// A Refusal is a request that was not admitted.
type Refusal struct {
	Reason  Reason
	Model   string
	Waited  time.Duration // in the queue
	Ahead   int           // requests that would have been served before
	Midway  int           // of them, answers that had begun and gave way
	Afar    bool          // so would answers of another gateway that gave way
	Retry   time.Duration // when to come again, by what is known now; 0: no use
	Because error         // what the dispatcher said last; nil when it was not asked
}

func (r *Refusal) Error() string {
	switch {
	case r.Because != nil:
		return fmt.Sprintf("model %q: %v", r.Model, r.Because)
	case r.Reason == QueueFull:
		return fmt.Sprintf("model %q: %d requests wait already%s", r.Model, r.Ahead, r.begun())
	case r.Reason == WaitTooLong:
		return fmt.Sprintf("model %q: %d requests wait before this one, which would not be served in time%s", r.Model, r.Ahead, r.begun())
	}
	return fmt.Sprintf("model %q: waited %s for room, %d requests are still before this one%s", r.Model, r.Waited.Round(time.Millisecond), r.Ahead, r.begun())
}

// begun says which of those before are answers that had begun: nobody passes them.
func (r *Refusal) begun() string {
	switch {
	case r.Midway > 0 && r.Afar:
		return fmt.Sprintf("; %d of them, and others at another gateway, are answers that gave way in the middle", r.Midway)
	case r.Midway > 0:
		return fmt.Sprintf("; %d of them are answers that gave way in the middle", r.Midway)
	case r.Afar:
		return "; answers of another gateway that gave way in the middle go first"
	}
	return ""
}

// Is reports whether target is ErrRefused.
func (r *Refusal) Is(target error) bool { return target == ErrRefused }
