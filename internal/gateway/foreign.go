package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/engines"
	"hecate/internal/gateway/openai"
	"hecate/swarm"
)

// foreign sends requests for models of engines to them, whatever their path below
// /v1, and all others on. Where engines and our own nodes serve the same model, the
// cheaper goes first, by the same price, and the other one stands by.
func (g *Gateway) foreign(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bound := keyOf(r.Context())
		if r.Method != http.MethodPost || !ofModels(r.URL) || !g.engines.Any() && !bound.names() {
			mux.ServeHTTP(w, r)
			return
		}
		c, err := engines.Read(w, r)
		if c == nil {
			faultOf(err).Write(w)
			return
		}
		defer c.Close()
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(c.Body())), int64(len(c.Body()))
		if err == nil {
			if fault := bound.mayAsk(c.Model); fault != nil {
				fault.Write(w)
				return
			}
		}
		if err != nil || !g.engines.Has(c.Model) { // our own handlers have the better words
			mux.ServeHTTP(w, r)
			return
		}
		caller, fault := callerOf(r)
		if fault != nil {
			fault.Write(w)
			return
		}
		c.Key = caller.Key
		ask := g.engineHandler(c)
		if _, pattern := mux.Handler(r); pattern == "/" || g.catalog.find(c.Model) == nil || g.cheaper(c) {
			g.serve(ask)(w, r)
			return
		}
		mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), standbyKey{}, ask)))
	})
}

// standbyKey finds, in a request's context, the handler that answers when our own
// nodes cannot, before anything was written.
type standbyKey struct{}

func standby(ctx context.Context) handler {
	h, _ := ctx.Value(standbyKey{}).(handler)
	return h
}

// engineHandler asks the engines of a model.
func (g *Gateway) engineHandler(c *engines.Call) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		began, out := time.Now(), &engines.Outcome{}
		outcome := "broken" // unless it returns
		defer func() {
			if outcome == "broken" && r.Context().Err() != nil {
				outcome = "client left"
				g.counts.left.Add(1)
			}
			keyOf(r.Context()).spend(out.PromptTokens + out.CompletionTokens)
			g.log.Info("request", "request", w.Header().Get("X-Request-Id"), "path", r.URL.Path, "outcome", outcome, "model", c.Model,
				"engine", out.Engine, "failed_tries", out.Tries, "prompt_tokens", out.PromptTokens, "tokens", out.CompletionTokens, "took", rounded(time.Since(began)))
		}()
		err := g.engines.Serve(w, r, c, out)
		switch {
		case err == nil:
			outcome = "finished"
		case r.Context().Err() != nil:
			outcome = "client left"
		default:
			outcome, err = "refused", engines.Fault(err)
		}
		return err
	}
}

// exploring is how many requests there are for each one that finds out about an
// engine of unknown speed beside nodes of known speed: the share that swarm's own
// policy explores with.
const exploring = 20

// cheaper says that an engine is to be asked before our own nodes. Whoever's speed
// is unknown must be asked to become known: our own nodes at once, engines now and
// then.
func (g *Gateway) cheaper(c *engines.Call) bool {
	theirs, measured, can := g.engines.Price(c)
	if !can {
		return false
	}
	model := g.catalog.find(c.Model)
	if model == nil || g.missing(model) != "" {
		return true
	}
	e, err := g.dispatch.Explain(answer.Need{
		Model: c.Model, Layers: model.Record.Spec.Layers, PromptTokens: c.PromptTokens,
		OutputTokens: min(max(1, c.OutputTokens), model.Context()),
	})
	if err != nil {
		return true
	}
	ours, known := cheapest(e.Candidates)
	switch {
	case ours == swarm.Infinite:
		return true
	case !known:
		return false
	case !measured:
		return g.explored.Add(1)%exploring == 1
	}
	return theirs < ours
}

// cheapest is the price of the copy that would be used, and whether every node of
// it was measured.
func cheapest(candidates []swarm.Candidate) (cost swarm.Cost, measured bool) {
	cost = swarm.Infinite
	for _, c := range candidates {
		if c.Usable && c.Cost < cost {
			cost, measured = c.Cost, c.Terms[swarm.TermUnmeasured] == 0
		}
	}
	return cost, measured
}

// ofModels says that a path is one at which models are asked, here or elsewhere:
// plain, and not one of our own documents.
func ofModels(u *url.URL) bool {
	path := u.EscapedPath()
	rest, ok := strings.CutPrefix(path, "/v1/")
	if !ok || rest == "" || strings.Contains(path, "..") || strings.Contains(path, "//") {
		return false
	}
	for _, ours := range []string{"swarm", "pool", "admin", "models"} {
		if rest == ours || strings.HasPrefix(rest, ours+"/") {
			return false
		}
	}
	return !strings.ContainsFunc(rest, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/_-.", c))
	})
}

// engineModels are the names that only engines serve.
func (g *Gateway) engineModels() (out []openai.Model) {
	for _, m := range g.engines.Models() {
		if g.catalog.find(m.ID) == nil {
			out = append(out, foreignModel(m))
		}
	}
	return out
}

func foreignModel(m engines.Model) openai.Model {
	return openai.Model{
		ID: m.ID, Object: "model", Created: m.Created.Unix(), OwnedBy: "engine",
		Hecate: &openai.ModelDetail{Ready: m.Ready, Engines: m.Engines},
	}
}

// showEngines serves GET /v1/swarm/engines.
func (g *Gateway) showEngines(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, g.engines.Views())
}

// Engines is the room of whole-model engines.
func (g *Gateway) Engines() *engines.Engines { return g.engines }
