package gateway

import (
	"context"
	"fmt"
	"math"
	"net/http"

	"golang.org/x/sync/errgroup"

	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/openai"
)

// embedAtOnce bounds the texts of one request that are computed at once, so that
// it leaves room for others.
const embedAtOnce = 8

// embeddings serves POST /v1/embeddings.
func (g *Gateway) embeddings(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	req, fault := openai.DecodeEmbedding(body)
	if fault != nil {
		return fault
	}
	model, fault := g.lookup(r.Context(), req.Model)
	if fault != nil {
		return fault
	}
	caller, fault := callerOf(r)
	if fault != nil {
		return fault
	}
	prompts, fault := inputTokens(req.Input, model)
	if fault != nil {
		return fault
	}
	pooling, fault := poolingOf(req, model)
	if fault != nil {
		return fault
	}
	e := &embedding{gateway: g, id: newID("embd-"), model: model, caller: caller, pooling: pooling, prompts: prompts, chaos: g.chaos.take(model.Record.ID)}
	defer func() { keyOf(r.Context()).spend(e.tokens()) }()
	if err := e.compute(r.Context()); err != nil {
		return err
	}
	w.Header().Set("X-Hecate-Route", e.facts[0].route)
	return writeJSON(w, e.word(req))
}

// inputTokens reads all texts. What they say never becomes a control token.
func inputTokens(in openai.Inputs, m *Model) (out [][]int32, fault *openai.Error) {
	for i := range in.Len() {
		var ids []int32
		if in.Tokens != nil {
			ids = in.Tokens[i]
			if fault := knownTokens("input", ids, m); fault != nil {
				return nil, fault
			}
		} else {
			var err error
			if in.Texts[i] == "" {
				return nil, openai.BadRequest("input", "invalid_value", "'input[%d]' is empty.", i)
			}
			if ids, err = m.Text.EncodeText(in.Texts[i], true, false); err != nil {
				return nil, openai.BadRequest("input", "invalid_value", "'input[%d]' cannot be read: %s.", i, err)
			}
		}
		switch {
		case len(ids) == 0:
			return nil, openai.BadRequest("input", "invalid_value", "'input[%d]' is empty.", i)
		case len(ids) >= m.Context():
			return nil, openai.BadRequest("input", "context_length_exceeded", "'input[%d]' has %d tokens, at most %d are taken.", i, len(ids), m.Context()-1)
		}
		out = append(out, ids)
	}
	return out, nil
}

// poolingOf is how a text's states become one vector.
func poolingOf(req *openai.EmbeddingRequest, m *Model) (Pooling, *openai.Error) {
	p := m.Text.Pooling()
	switch {
	case p.Kind == "":
		return p, openai.BadRequest("model", "unsupported_value", "The model %q pools in a way that is not supported here; mean and last are.", req.Model)
	case req.Dimensions != nil && *req.Dimensions > p.Width:
		return p, openai.BadRequest("dimensions", "invalid_value", "'dimensions' is %d, but the model's vectors have %d.", *req.Dimensions, p.Width)
	}
	return p, nil
}

// embedding is one request for vectors.
type embedding struct {
	gateway *Gateway
	id      string
	model   *Model
	caller  answer.Caller
	pooling Pooling
	prompts [][]int32
	chaos   []answer.Chaos

	blends []blend // by prompt
	facts  []fact
}

// fact is what befell one text.
type fact struct {
	rescues int
	route   string
}

// compute runs all texts, some at once, each through its own route.
func (e *embedding) compute(ctx context.Context) error {
	e.blends, e.facts = make([]blend, len(e.prompts)), make([]fact, len(e.prompts))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(embedAtOnce)
	for i := range e.prompts {
		group.Go(func() error { return e.one(ctx, i) })
	}
	return group.Wait()
}

// tokens is how many were computed, also of a request that failed.
func (e *embedding) tokens() (n int) {
	for i := range e.blends {
		n += e.blends[i].rows
	}
	return n
}

func (e *embedding) one(ctx context.Context, i int) error {
	record, id := e.model.Record, fmt.Sprintf("%s.%d", e.id, i)
	job := answer.Job{
		ID: id, Model: record.ID, Layers: record.Spec.Layers, Width: e.pooling.Width, Prompt: e.prompts[i], MaxTokens: 1,
		States: &e.blends[i], Caller: e.caller,
	}
	job.Caller.Request = id
	if i == 0 {
		job.Chaos = e.chaos
	}
	e.blends[i].last = e.pooling.Kind == PoolLast
	a, err := e.gateway.runner.Start(ctx, job)
	if err != nil {
		return err
	}
	defer a.Close()
	if err := a.States(); err != nil {
		return err
	}
	e.facts[i] = fact{a.Rescues(), routeHeader(a.Route())}
	return nil
}

// word shapes the answer.
func (e *embedding) word(req *openai.EmbeddingRequest) openai.EmbeddingList {
	out := openai.EmbeddingList{
		Object: "list", Model: e.model.Record.ID, Data: []openai.Embedding{},
		Hecate: openai.EmbeddingDetail{Pooling: e.pooling.Kind, Declared: e.pooling.Declared, Route: e.facts[0].route},
	}
	for i := range e.blends {
		v := e.blends[i].vector(req.Dimensions)
		out.Data = append(out.Data, openai.Embedding{Object: "embedding", Index: i, Vector: req.Encode(v)})
		out.Usage.PromptTokens += len(e.prompts[i])
		out.Hecate.Rescues += e.facts[i].rescues
	}
	out.Usage.TotalTokens = out.Usage.PromptTokens
	return out
}

// blend makes one vector of the states of a text's tokens. Sums are in double
// precision and in order of the positions, so that they do not depend on how
// the rows came.
type blend struct {
	last bool // the last row alone
	rows int
	sum  []float64
}

// Collected implements answer.Collector.
func (b *blend) Collected() int { return b.rows }

// Collect implements answer.Collector.
func (b *blend) Collect(position int, rows []float32, width int) {
	if b.sum == nil {
		b.sum = make([]float64, width)
	}
	for at := max(b.rows-position, 0); (at+1)*width <= len(rows); at++ {
		if b.last {
			clear(b.sum)
		}
		for i, x := range rows[at*width : (at+1)*width] {
			b.sum[i] += float64(x)
		}
		b.rows++
	}
}

// vector is of length 1; of fewer dimensions, its first ones.
func (b *blend) vector(dimensions *int) []float32 {
	sum := b.sum
	if dimensions != nil {
		sum = sum[:*dimensions]
	}
	square := 0.0
	for _, x := range sum {
		square += x * x
	}
	scale := 0.0
	if square > 0 {
		scale = 1 / math.Sqrt(square)
	}
	out := make([]float32, len(sum))
	for i, x := range sum {
		out[i] = float32(x * scale)
	}
	return out
}
