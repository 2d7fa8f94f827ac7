package node

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"hecate/internal/demomodel"
	"hecate/internal/engine"
	"hecate/internal/sampling"
	"hecate/internal/sampling/grammar"
	"hecate/internal/stage"
)

// inMemory is a model's file.
type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

// demoWords reads the demo model, and counts.
func demoWords(opened *int) *words {
	return &words{
		content: func(model string) string { return model },
		open: func(context.Context, string, string) (engine.Weights, error) {
			*opened++
			return inMemory{bytes.NewReader(demomodel.GGUF())}, nil
		},
	}
}

func TestAVocabularyIsReadOnce(t *testing.T) {
	opened := 0
	w := demoWords(&opened)
	for range 3 {
		v, err := w.of(t.Context(), "m")
		if err != nil || v.Size() != 2048 {
			t.Fatalf("%v, %d tokens", err, v.Size())
		}
	}
	if opened != 1 {
		t.Errorf("read %d times", opened)
	}
	w.content = func(string) string { return "other" }
	if _, err := w.of(t.Context(), "m"); err != nil || opened != 2 {
		t.Errorf("%v: other content was read %d times", err, opened-1)
	}
	w.by = nil
	w.open = func(context.Context, string, string) (engine.Weights, error) { return nil, errors.New("gone") }
	if _, err := w.of(t.Context(), "m"); err == nil {
		t.Error("no error without the file")
	}
}

// A stage that draws within a shape refuses what it cannot hold to, and says that
// the gateway is to blame.
func TestStagesOfAGivenShape(t *testing.T) {
	w := newWorld(t)
	open := last("a", 5, 6)
	open.Sampler.Params = sampling.Params{Grammar: &grammar.Grammar{Start: "s", Rules: map[string]grammar.Expr{"s": grammar.Text("yes")}}}
	if _, _, err := w.dial(open); codeOf(err) != stage.CodeInternal {
		t.Errorf("a node without vocabularies: %v", err)
	}
	opened := 0
	w.server.words = demoWords(&opened)
	if _, _, err := w.dial(open); codeOf(err) != stage.CodeBad { // the fake's logits are of 50 tokens
		t.Errorf("a vocabulary larger than the logits: %v", err)
	}
	open.Sampler.Params.Grammar.Start = "nobody"
	if _, _, err := w.dial(open); codeOf(err) != stage.CodeBad {
		t.Errorf("a broken grammar: %v", err)
	}
	states := last("b", 5)
	states.States = true
	if _, _, err := w.dial(states); codeOf(err) != stage.CodeBad {
		t.Errorf("a stage that shall draw and give its states: %v", err)
	}
}
