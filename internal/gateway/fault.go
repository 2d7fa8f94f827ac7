package gateway

import (
	"errors"
	"net/http"
	"time"

	"hecate/internal/gateway/admission"
	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/openai"
	"hecate/internal/stage"
	"hecate/swarm"
)

// dispatchRetry is when something may have changed: health comes each second,
// and a node restarts in about as long.
const dispatchRetry = 2 * time.Second

// statusClientGone is what the log says of a request whose client left; nginx
// made the number known.
const statusClientGone = 499

// faultOf is the one table from our errors to what a client is told.
func faultOf(err error) *openai.Error {
	var known *openai.Error
	if errors.As(err, &known) {
		return known
	}
	for _, row := range []struct {
		is    error
		fault func(error) *openai.Error
	}{
		{answer.ErrQueryOfDeath, func(err error) *openai.Error {
			e := openai.Internal("query_of_death", "This request ended the nodes that computed it and is refused for a while.")
			e.NoRetry = true
			return e
		}},
		{admission.ErrRefused, refused},
		{answer.ErrNoWayOn, func(err error) *openai.Error {
			return openai.Unavailable("no_way_on", "The nodes that computed this answer are gone and no others hold their layers: "+err.Error(), 5*time.Second)
		}},
		{answer.ErrNoRoom, func(err error) *openai.Error {
			return openai.Overloaded("no_room", "This answer had to wait in the middle, and found no room to go on: "+err.Error(), 5*time.Second)
		}},
		{swarm.ErrUnrecoverable, unavailable},
		{swarm.ErrNoRoute, unavailable},
	} {
		if errors.Is(err, row.is) {
			return row.fault(err)
		}
	}
	var refusal *stage.Error
	if errors.As(err, &refusal) {
		return openai.Internal(string(refusal.Code), "The model failed at this request: "+refusal.Message)
	}
	return openai.Internal("internal_error", err.Error())
}

func unavailable(err error) *openai.Error {
	return openai.Unavailable("not_ready", "No copy of the model is ready: "+err.Error(), dispatchRetry)
}

// refused words what admission said. It knows best when to come again.
func refused(err error) *openai.Error {
	var r *admission.Refusal
	errors.As(err, &r)
	reason := string(r.Reason)
	switch r.Reason {
	case admission.NotReady:
		return openai.Unavailable(reason, "No copy of the model is ready: "+r.Error(), r.Retry)
	case admission.TooLarge:
		e := openai.BadRequest("max_tokens", reason, "No copy of the model has room for prompt and answer together: %s", r.Error())
		e.Reason = reason
		return e
	}
	return openai.Overloaded(reason, "All copies of the model are busy: "+r.Error(), r.Retry)
}

// handler is a handler that may fail before it wrote anything.
type handler func(w http.ResponseWriter, r *http.Request) error

func (g *Gateway) serve(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if other := standby(r.Context()); other != nil && err != nil && r.Context().Err() == nil && faultOf(err).Status >= http.StatusTooManyRequests {
			g.log.Info("engines answer instead", "request", w.Header().Get("X-Request-Id"), "because", err)
			err = other(w, r)
		}
		switch {
		case err == nil:
			g.counts.finished.Add(1)
		case r.Context().Err() != nil || errors.Is(err, errDeaf):
			g.counts.left.Add(1)
			g.log.Info("client left", "status", statusClientGone, "path", r.URL.Path, "request", w.Header().Get("X-Request-Id"))
		default:
			f := faultOf(err)
			g.log.Warn("request refused", "status", f.Status, "path", r.URL.Path, "request", w.Header().Get("X-Request-Id"), "because", err)
			f.Write(w)
		}
	}
}
