package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/calls"
	"hecate/internal/gateway/openai"
	"hecate/internal/sampling"
	"hecate/swarm"
)

// generation is one request being answered: its choices, computed at once.
type generation struct {
	id      string
	created time.Time
	model   *Model
	asked   string // the model that was asked for, when model stands in for it
	prompt  []int32
	choices []*choice
	pieces  chan piece
	wg      sync.WaitGroup
	cancel  context.CancelFunc
	keep    func() bool // lets the choices outlive the request
}

// wish is what a request asks to be generated, whatever its shape was.
type wish struct {
	id        string
	model     *Model
	prompt    []int32
	maxTokens *int
	stops     []string
	params    []sampling.Params // one per choice
	chaos     []answer.Chaos
	caller    answer.Caller
	style     calls.Style // how the model writes calls
	callable  []string    // the functions that it may call

	// reword is the same wish put to another model, or why that cannot be.
	reword  func(*Model) (wish, *openai.Error)
	standIn bool   // another model answers if this one cannot
	asked   string // the model that was asked for, when this one stands in for it
}

// begin starts all choices. The context bounds them; close ends them.
func (g *Gateway) begin(ctx context.Context, w wish) (*generation, error) {
	limit, fault := budget(len(w.prompt), w.maxTokens, w.model.Context())
	if fault != nil {
		return nil, fault
	}
	speakers, fault := w.speakers()
	if fault != nil {
		return nil, fault
	}
	request, began := ctx, time.Now()
	ctx, cancel := context.WithCancel(context.WithoutCancel(request))
	gen := &generation{
		id: w.id, created: time.Now(), model: w.model, asked: w.asked, prompt: w.prompt, pieces: make(chan piece, len(w.params)),
		cancel: cancel, keep: context.AfterFunc(request, cancel),
	}
	for i, params := range w.params {
		a, err := g.runner.Start(ctx, answer.Job{
			ID: jobID(w.id, i), Model: w.model.Record.ID, Layers: w.model.Record.Spec.Layers, Width: w.model.Text.Pooling().Width,
			Prompt: w.prompt, MaxTokens: limit, Params: params, Chaos: w.chaos, StandIn: w.standIn, Caller: w.caller,
		})
		if err != nil {
			gen.close()
			return nil, err
		}
		c := &choice{index: i, text: w.model.Text, speaker: speakers[i], ear: w.ear(), left: limit, began: began, told: g.measure(w.model.Record.ID), pulse: &g.pulse}
		c.answer.Store(a)
		gen.choices = append(gen.choices, c)
	}
	for _, c := range gen.choices {
		gen.wg.Go(func() { c.run(ctx, gen.pieces) })
	}
	return gen, nil
}

// measure tells the histograms of a whole choice.
func (g *Gateway) measure(model string) func(*choice) {
	return func(c *choice) {
		g.metrics.Answers.First(model, c.first)
		g.pulse.First(c.first)
		g.metrics.Answers.Finished(model, time.Since(c.began), c.first, c.produced)
	}
}

// speakers gives each choice a voice of its own.
func (w wish) speakers() ([]Speaker, *openai.Error) {
	out := make([]Speaker, len(w.params))
	for i := range out {
		s, err := w.model.Text.Speak(w.stops)
		if err != nil {
			return nil, openai.BadRequest("stop", "invalid_value", "'stop': %s.", err)
		}
		out[i] = s
	}
	return out, nil
}

func jobID(request string, choice int) string {
	if choice == 0 {
		return request
	}
	return fmt.Sprintf("%s.%d", request, choice)
}

// budget is how many tokens may be generated: what was asked for, as far as the
// context has room.
func budget(prompt int, asked *int, context int) (int, *openai.Error) {
	room := context - prompt
	want := 1
	if asked != nil {
		want = *asked
	}
	if room < 1 {
		return 0, openai.ContextLength(prompt, want, context)
	}
	if asked == nil {
		return room, nil
	}
	return min(*asked, room), nil
}

// close ends whatever still runs and waits for it.
func (gen *generation) close() {
	gen.cancel()
	gen.settle()
}

// settle waits until all choices are done by themselves, and gives back what
// they had.
func (gen *generation) settle() {
	gen.wg.Wait()
	gen.cancel()
	for _, c := range gen.choices {
		c.answer.Load().Close()
	}
}

// begun says that some choice has a token.
func (gen *generation) begun() bool {
	return slices.ContainsFunc(gen.choices, func(c *choice) bool { return c.answer.Load().Generated() > 0 })
}

// usage counts tokens. It is called when all choices are done.
func (gen *generation) usage() openai.Usage {
	u := openai.Usage{PromptTokens: len(gen.prompt)}
	for _, c := range gen.choices {
		u.CompletionTokens += c.produced
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u
}

// hecate is what we add beside usage.
func (gen *generation) hecate() openai.Hecate {
	h := openai.Hecate{Degraded: gen.asked}
	for _, c := range gen.choices {
		h.Rescues += c.answer.Load().Rescues()
	}
	h.Route = routeHeader(gen.choices[0].answer.Load().Route())
	return h
}

// head writes what can be told before the first token.
func (gen *generation) head(h http.Header) {
	h.Set("X-Hecate-Route", routeHeader(gen.choices[0].answer.Load().Route()))
	exactness := "exact"
	rescues := 0
	for _, c := range gen.choices {
		rescues += c.answer.Load().Rescues()
		if !c.answer.Load().Exact() || !gen.model.Quantised() {
			exactness = "coherent"
		}
	}
	h.Set("X-Hecate-Exactness", exactness)
	if gen.asked != "" {
		h.Set(degradedHeader, gen.asked)
	}
	if rescues > 0 {
		h.Set("X-Hecate-Rescues", fmt.Sprint(rescues))
	}
}

// routeHeader prints a route as node[first-last], stages separated by commas.
func routeHeader(r swarm.Route) string {
	parts := make([]string, len(r.Stages))
	for i, s := range r.Stages {
		parts[i] = fmt.Sprintf("%s[%d-%d]", s.Node, s.Layers.First, s.Layers.Last)
	}
	return strings.Join(parts, ",")
}
