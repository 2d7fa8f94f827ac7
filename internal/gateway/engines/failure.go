package engines

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// A Kind is a way in which an engine failed. It stands in metrics.
type Kind string

const (
	Unreachable Kind = "unreachable"  // refused, reset, or no headers came
	Silent      Kind = "silent"       // nothing came in time
	Cut         Kind = "cut"          // the answer broke off
	Empty       Kind = "empty"        // status 200 without an answer
	Malformed   Kind = "malformed"    // no JSON, or events that break off
	Broken      Kind = "server_error" // 5xx, or an error event before the answer
	Busy        Kind = "busy"         // 429
	Forbidden   Kind = "forbidden"    // it refuses the key that it is given
	Missing     Kind = "missing"      // it says that it has no such model
	Dead        Kind = "dead"         // it was found dead while it was waited for
)

// Kinds lists all there are; each is counted.
func Kinds() []Kind {
	return []Kind{Unreachable, Silent, Cut, Empty, Malformed, Broken, Busy, Forbidden, Missing, Dead}
}

// counts says that a failure is the engine's fault, for its circuit.
func (k Kind) counts() bool { return !slices.Contains([]Kind{Busy, Missing}, k) }

// failure is why an attempt gave no answer.
type failure struct {
	kind       Kind
	engine     string
	because    error
	retryAfter time.Duration // of Busy
	answer     *refused      // what the engine said, when it said something; nil otherwise
}

func (f *failure) Error() string {
	return fmt.Sprintf("engine %s: %s: %v", f.engine, f.kind, f.because)
}

func (f *failure) Unwrap() error { return f.because }

// refused is an engine's own answer of a status that is not 2xx.
type refused struct {
	status int
	header http.Header
	body   []byte
}

// causes of an attempt's end that come from us.
var (
	errSilent = errors.New("it said nothing in time")
	errPaused = errors.New("it stopped in the middle of the answer")
	errDead   = errors.New("it does not answer any more")
)

// failed words an error of the connection. The context's cause tells whether we
// ended it ourselves.
func failed(e *engine, ctx context.Context, kind Kind, err error) *failure {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errSilent), errors.Is(cause, errPaused):
		kind, err = Silent, cause
	case errors.Is(cause, errDead):
		kind, err = Dead, cause
	}
	return &failure{kind: kind, engine: e.rec.ID, because: err}
}

// retryAfter reads a header in seconds or as a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	if t, err := http.ParseTime(text); err == nil && t.After(now) {
		return t.Sub(now)
	}
	return 0
}
