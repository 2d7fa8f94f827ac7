package engines

import (
	"context"
	"errors"
	"net/http"
	"time"

	"hecate/internal/gateway/openai"
)

// An Outcome is how a request went, for the log and for counts.
type Outcome struct {
	Engine           string // the last one that was asked; "": none
	Tries            int    // attempts that failed
	Resumed          int    // of them in the middle of the answer
	PromptTokens     int
	CompletionTokens int
}

// mostResumes bounds how often one answer goes on elsewhere.
const mostResumes = 4

// Serve answers a call. The error, if any, came before anything was written: an
// *openai.Error, or the context's. An answer that is lost after that is aborted by
// a panic with http.ErrAbortHandler. The call stays the caller's to close.
func (r *Engines) Serve(w http.ResponseWriter, req *http.Request, c *Call, out *Outcome) error {
	if hops(req) >= mostHops {
		return openai.Unavailable("loop", "This request went through too many gateways: they are each other's engines.", time.Minute)
	}
	l := newRelay(w, req, c)
	defer l.close()
	t := &trial{room: r, relay: l, call: c, out: out}
	err := t.run()
	out.PromptTokens, out.CompletionTokens = l.tokens.prompt, l.tokens.completion
	switch {
	case err == nil || !l.streaming():
	case req.Context().Err() != nil:
		t.abort(errDeaf) // he may have closed his own half of the connection only, and still read
	default:
		r.cfg.Log.Error("answer of an engine broken", "engine", out.Engine, "request", w.Header().Get("X-Request-Id"), "because", err)
		t.abort(err)
	}
	return err
}

// trial is the search for an engine that answers.
type trial struct {
	room  *Engines
	relay *relay
	call  *Call
	out   *Outcome
	tried []string
	last  *failure
}

func (t *trial) run() error {
	for {
		g, err := t.room.choose(t.relay.r.Context(), t.call, t.tried)
		if err != nil {
			return t.giveUp(err)
		}
		t.out.Engine = g.engine.rec.ID
		err = t.ask(g)
		if err == nil {
			return nil
		}
		var f *failure
		if !errors.As(err, &f) {
			return err
		}
		if !t.onward(f) {
			return t.giveUp(ErrNone)
		}
	}
}

// ask makes one attempt, and takes its failure into the books.
func (t *trial) ask(g *grant) error {
	body, own := t.call.as(g.own)
	if own {
		body = nil
	}
	if t.relay.begun() {
		body = t.relay.past.goOn(t.call, g.own)
	}
	released := false
	defer func() {
		if !released { // a panic goes through here
			t.room.release(g, nil)
		}
	}()
	err := t.room.try(t.relay, t.call, g, body)
	released = true
	t.room.release(g, func(e *engine, now time.Time) {
		var f *failure
		if errors.As(err, &f) {
			e.blame(f, now)
		}
	})
	return err
}

// onward says whether another engine may be asked after a failure.
func (t *trial) onward(f *failure) bool {
	t.last = f
	t.out.Tries++
	t.relay.tries++
	t.room.cfg.Log.Warn("an engine failed", "engine", f.engine, "kind", f.kind, "model", t.call.Model,
		"request", t.relay.w.Header().Get("X-Request-Id"), "begun", t.relay.begun(), "because", f.because)
	if !t.relay.begun() {
		t.tried = append(t.tried, f.engine)
		return true
	}
	if t.out.Resumed++; t.out.Resumed > mostResumes || t.relay.past.goOn(t.call, t.call.Model) == nil {
		return false
	}
	if t.out.Resumed == 1 {
		t.tried = t.room.unproven(t.call.Model)
	} else {
		t.tried = append(t.tried, f.engine)
	}
	t.relay.past.again = true
	return true
}

// unproven are the engines of a model that nobody has seen continuing a prefix.
func (r *Engines) unproven(model string) (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, e := range r.mu.by {
		if own := e.serves(model); own != "" && !e.resumes[own] {
			out = append(out, id)
		}
	}
	return out
}

// giveUp words the end of the search. What an engine itself said is passed on.
func (t *trial) giveUp(err error) error {
	switch {
	case t.relay.r.Context().Err() != nil:
		return context.Cause(t.relay.r.Context())
	case t.last != nil && t.last.answer != nil && !t.relay.begun() && errors.Is(err, ErrNone):
		t.relay.refuse(t.last.answer)
		return nil
	case t.last != nil && errors.Is(err, ErrNone):
		return t.last
	}
	return err
}

// abort ends an answer that had begun. It does not return.
func (t *trial) abort(err error) {
	if errors.Is(err, errDeaf) || !t.call.Stream {
		t.relay.close()
		panic(http.ErrAbortHandler)
	}
	t.relay.breakOff(Fault(err))
}

// Fault is what a client is told.
func Fault(err error) *openai.Error {
	var known *openai.Error
	var busy *BusyError
	var f *failure
	var paused *PausedError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &paused):
		return openai.Overloaded("no_room", "All engines of the model are busy: "+paused.Error()+".", paused.Retry)
	case errors.As(err, &busy):
		return openai.Overloaded("queue_full", "All engines of the model are busy: "+busy.Error()+".", busy.Retry)
	case errors.As(err, &f):
		return openai.Unavailable("engine_failed", "The engine that was to answer failed ("+string(f.kind)+"), and no other one could take over.", failedRetry)
	case errors.Is(err, ErrNone):
		return openai.Unavailable("not_ready", "No engine that serves the model can be used now.", failedRetry)
	}
	return openai.Internal("internal_error", err.Error())
}

// failedRetry is when things may have changed: engines are looked at as often.
const failedRetry = lookBusy
