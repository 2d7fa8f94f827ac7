package gateway

import (
	"context"
	"errors"
	"net/http"

	"hecate/internal/event"
	"hecate/internal/gateway/admission"
	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/openai"
)

// A model may be declared to stand in for another one. When that one cannot be
// served, requests for it are answered by the stand-in, and say so: the header,
// the body's model, and hecate.degraded. It happens before the first token or
// not at all, since another model's words would be another answer.
const (
	degradedHeader = "X-Hecate-Degraded" // of an answer: the model that was asked for
	fallbackHeader = "X-Hecate-Fallback" // of a request: allow (as without) or never
)

// fallsBack says whether a request takes an answer of another model.
func fallsBack(r *http.Request, body *openai.Common) (bool, *openai.Error) {
	switch text := r.Header.Get(fallbackHeader); text {
	case "", "allow":
	case "never":
		return false, nil
	default:
		return false, openai.BadRequest(fallbackHeader, "invalid_value", "'%s' is %q, want allow or never.", fallbackHeader, text)
	}
	return body.FallsBack(), nil
}

// transferable says whether a wish means the same to another model. Biases speak
// of one vocabulary's tokens.
func (w wish) transferable() bool { return len(w.params[0].LogitBias) == 0 }

// standIns are the wishes that may be fulfilled instead of one that cannot be:
// of ready models only that the key is for, in the order of their names.
func (g *Gateway) standIns(ctx context.Context, w wish) []wish {
	var out []wish
	for _, m := range g.catalog.standIns(w.model.Record.ID) {
		if !g.usable(m) || keyOf(ctx).mayAsk(m.Record.ID) != nil {
			continue
		}
		other, fault := w.reword(m)
		if fault != nil {
			g.log.Info("a fallback model cannot take a request", "model", w.model.Record.ID, "fallback", m.Record.ID, "because", fault)
			continue
		}
		other.caller, other.asked = w.caller, w.model.Record.ID
		out = append(out, other)
	}
	return out
}

// hasStandIn says that a model is declared to stand in for another one, whether
// or not it is ready.
func (g *Gateway) hasStandIn(m *Model) bool { return len(g.catalog.standIns(m.Record.ID)) > 0 }

// unserved says that an error means: no copy of the model can be used. A model
// that is merely busy is waited for.
func unserved(err error) bool {
	var r *admission.Refusal
	if errors.As(err, &r) {
		return r.Reason == admission.NotReady
	}
	return errors.Is(err, answer.ErrNoWayOn)
}

// degraded counts and tells of an answer of a stand-in.
func (g *Gateway) degraded(w wish, because error) {
	g.events.Publish(event.Degradation{Job: w.id, Model: w.asked, By: w.model.Record.ID, Because: because.Error()})
	g.counts.mu.Lock()
	defer g.counts.mu.Unlock()
	g.counts.degraded++
}
