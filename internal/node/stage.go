package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"hecate/internal/engine"
	"hecate/internal/sampling"
	"hecate/internal/sampling/grammar"
	"hecate/internal/stage"
)

// running is one stage of one answer on this node.
type running struct {
	open    stage.Open
	gateway string  // whose answer it is of
	ledger  *ledger // where its cells are written down
	session engine.Session
	cells   int // reserved
	width   int

	sampler *sampling.Sampler // nil unless this is the last stage
	tokens  []int32           // last stage: prompt and drawn tokens, by position
	failure *failure          // armed by the gateway, nil in normal life
}

// begin opens the engine session of a stage.
func (s *Server) begin(ctx context.Context, gateway string, o stage.Open) (*running, error) {
	layers := engine.Range{First: o.First, Last: o.Last}
	f, err := s.fragment(o.Model, layers)
	if err != nil {
		return nil, err
	}
	if (o.Sampler != nil || o.States) != (o.Last == f.ModelLayers-1) || o.Sampler != nil && o.States {
		return nil, &stage.Error{Code: stage.CodeBad, Message: fmt.Sprintf("layers %d to %d of %d: only the last stage draws tokens or gives its states, and it must", o.First, o.Last, f.ModelLayers)}
	}
	r := &running{open: o, gateway: gateway, ledger: &s.ledger, cells: o.Cells, width: f.Width}
	if o.Sampler != nil {
		if r.sampler, err = s.sampler(ctx, o, f.Vocab); err != nil {
			return nil, err
		}
	}
	r.session, err = s.engine.Open(ctx, engine.SessionOptions{Model: o.Model, Layers: layers, Cells: o.Cells, Rescue: o.Rescue, States: o.States})
	if err != nil {
		return nil, err
	}
	r.ledger.note(r, r.cells)
	return r, nil
}

// sampler draws an answer's tokens; one of a given shape needs the vocabulary.
func (s *Server) sampler(ctx context.Context, o stage.Open, logits int) (*sampling.Sampler, error) {
	var vocabulary *grammar.Vocabulary
	if o.Sampler.Params.Grammar != nil {
		if s.words == nil {
			return nil, &stage.Error{Code: stage.CodeInternal, Message: "this node has no vocabularies"}
		}
		var err error
		if vocabulary, err = s.words.of(ctx, o.Model); err != nil {
			return nil, err
		}
	}
	out, err := sampling.NewShaped(o.Sampler.Params, vocabulary, logits)
	if err != nil {
		return nil, &stage.Error{Code: stage.CodeBad, Message: err.Error()}
	}
	return out, nil
}

// fragment finds a loaded run of layers that contains the range.
func (s *Server) fragment(model string, layers engine.Range) (engine.Fragment, error) {
	for _, f := range s.engine.Fragments() {
		if f.Model == model && f.Layers.Contains(layers) {
			return f, nil
		}
	}
	return engine.Fragment{}, &stage.Error{Code: stage.CodeNotHeld, Message: fmt.Sprintf("layers %d to %d of %s are not loaded here", layers.First, layers.Last, model)}
}

// takes reports whether a stage can go on as an Open says.
func (r *running) takes(o stage.Open) bool {
	return (r.sampler == nil) == (o.Sampler == nil) && r.open.States == o.States
}

// accept takes what an Open says about an answer that may have gone on elsewhere.
func (r *running) accept(o stage.Open, f *failure) {
	r.open, r.failure = o, f
	if o.Sampler != nil {
		r.tokens = slices.Clone(o.Sampler.Tokens)
	}
}

// grow reserves so many cells in all, if there are any; where there are none the
// stage goes on as it was.
func (r *running) grow(ctx context.Context, cells int) error {
	if cells <= r.cells {
		return nil
	}
	err := r.session.Grow(ctx, cells)
	if errors.Is(err, engine.ErrNoCells) {
		return nil
	}
	if err == nil {
		r.cells = cells
		r.ledger.note(r, cells)
	}
	return err
}

// step computes one step and draws the token if that was wanted.
func (r *running) step(ctx context.Context, s stage.Step) (stage.Result, error) {
	r.failure.strike(s)
	out, err := r.session.Step(ctx, engine.Input{Position: s.Position, Tokens: s.Tokens, Hidden: s.Hidden, Want: wanted[s.Want], Background: r.open.Shadow})
	if err != nil {
		return stage.Result{}, err
	}
	res := stage.Result{Kind: stage.KindDone, Position: s.Position, Rows: s.Rows(), Timing: stage.Timing{Queue: out.Queue, Compute: out.Compute}}
	switch s.Want {
	case stage.WantHidden:
		res.Kind, res.Hidden, res.Width = stage.KindHidden, out.Hidden, r.width
	case stage.WantToken:
		res.Kind = stage.KindToken
		res.Token, err = r.draw(out.Logits, s.Position+s.Rows())
	}
	return res, err
}

var wanted = map[stage.Want]engine.Want{
	stage.WantNothing: engine.WantNone,
	stage.WantHidden:  engine.WantAll,
	stage.WantToken:   engine.WantLast,
}

// draw chooses the token at position, which comes after position tokens.
func (r *running) draw(logits []float32, position int) (stage.Token, error) {
	if r.sampler == nil {
		return stage.Token{}, &stage.Error{Code: stage.CodeBad, Message: "this stage does not hold the head"}
	}
	if position > len(r.tokens) {
		return stage.Token{}, &stage.Error{Code: stage.CodeBad, Message: fmt.Sprintf("token %d is asked for, but only %d before it are known", position, len(r.tokens))}
	}
	r.tokens = r.tokens[:position]
	c, err := r.sampler.Sample(logits, sampling.History{Tokens: r.tokens, Prompt: r.open.Sampler.Prompt}, position)
	if err != nil {
		return stage.Token{}, err
	}
	r.tokens = append(r.tokens, c.Token)
	t := stage.Token{ID: c.Token, Logprob: float32(c.Logprob)}
	for _, alt := range c.Top {
		t.Top = append(t.Top, stage.Alternative{ID: alt.Token, Logprob: float32(alt.Logprob)})
	}
	return t, nil
}

// close frees the cache cells.
func (r *running) close() {
	_ = r.session.Close()
	r.ledger.note(r, 0)
}

// refusal turns an error into what the gateway is told.
func refusal(err error) *stage.Error {
	var e *stage.Error
	if errors.As(err, &e) {
		return e
	}
	code := stage.CodeInternal
	for _, c := range []struct {
		is   error
		code stage.Code
	}{
		{engine.ErrNoCells, stage.CodeNoCells},
		{engine.ErrLayerNotHeld, stage.CodeNotHeld},
		{engine.ErrNotFinite, stage.CodeNotFinite},
		{sampling.ErrNotFinite, stage.CodeNotFinite},
		{sampling.ErrNoToken, stage.CodeBad}, // of this shape nobody finds one
		{engine.ErrPosition, stage.CodeBad},
		{engine.ErrInput, stage.CodeBad},
	} {
		if errors.Is(err, c.is) {
			code = c.code
			break
		}
	}
	return &stage.Error{Code: code, Message: err.Error()}
}
