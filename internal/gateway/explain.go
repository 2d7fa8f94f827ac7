package gateway

import (
	"net/http"
	"strconv"

	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/openai"
	"hecate/internal/report"
)

// showPlan serves GET /v1/swarm/plan.
func (g *Gateway) showPlan(w http.ResponseWriter, _ *http.Request) error {
	doc := g.plan.Load()
	if doc == nil {
		return openai.Unavailable("not_ready", "There is no plan yet: no node has joined.", dispatchRetry)
	}
	return writeJSON(w, report.Plan{Generation: doc.Generation, Epoch: doc.Epoch, Plan: doc.Plan})
}

// explain serves GET /v1/swarm/explain?model=&prompt_tokens=&max_tokens=.
func (g *Gateway) explain(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	id := q.Get("model")
	if all := g.catalog.all(); id == "" && len(all) > 0 {
		id = all[0].Record.ID
	}
	m, fault := g.lookup(r.Context(), id)
	if fault != nil {
		return fault
	}
	need := answer.Need{Job: "explain", Model: id, Layers: m.Record.Spec.Layers}
	for name, into := range map[string]*int{"prompt_tokens": &need.PromptTokens, "max_tokens": &need.OutputTokens} {
		text := q.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 1<<24 {
			return openai.BadRequest(name, "invalid_value", "'%s' is %q, want a number of tokens.", name, text)
		}
		*into = n
	}
	e, err := g.dispatch.Explain(need)
	if err != nil {
		return err
	}
	return writeJSON(w, e)
}
