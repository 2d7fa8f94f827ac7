package answer

import (
	"context"
	"sync"
	"testing"
)

// witness keeps spans.
type witness struct {
	mu    sync.Mutex
	spans []Span
}

func (w *witness) Span(_ context.Context, s Span) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spans = append(w.spans, s)
}

func (w *witness) of(k SpanKind) (out []Span) {
	for _, s := range w.spans {
		if s.Kind == k {
			out = append(out, s)
		}
	}
	return out
}

// Spans account for every row that was computed, and for what happened between.
func TestSpansTellAnAnswersLife(t *testing.T) {
	f, j := threeStages(), job(40, 24)
	w := &witness{}
	r := f.runner(Limits{Chunk: 16})
	r.Tracer = w
	if _, _, err := generate(t, r, j, func(i int) {
		if i == 10 {
			f.kill("b")
		}
	}); err != nil {
		t.Fatal(err)
	}
	if n := len(w.of(SpanQueue)); n != 1 {
		t.Errorf("%d spans of the queue", n)
	}
	if n := len(w.of(SpanOpen)); n != 2 {
		t.Errorf("%d spans of opening, want one for the route and one for the substitute", n)
	}
	rescues := w.of(SpanRescue)
	if len(rescues) != 1 || rescues[0].Node != "b" || rescues[0].Rescue != Splice || rescues[0].Position != 50 || rescues[0].Replayed != 49 {
		t.Errorf("rescues %+v", rescues)
	}
	answers := w.of(SpanAnswer)
	if len(answers) != 1 || answers[0].Tokens != 24 || answers[0].Rescues != 1 || answers[0].Err != nil {
		t.Errorf("answers %+v", answers)
	}
	rows := map[string]int{}
	phases := map[string]map[Phase]int{}
	for _, s := range w.of(SpanStage) {
		rows[s.Node] += s.Rows
		if phases[s.Node] == nil {
			phases[s.Node] = map[Phase]int{}
		}
		phases[s.Node][s.Phase] += s.Rows
		if s.Ended.Before(s.Began) || s.Steps < 1 || s.Steps > s.Rows {
			t.Errorf("%+v", s)
		}
	}
	for _, node := range []string{"a", "b", "c", "b2"} {
		if rows[node] != f.nodes[node].rows {
			t.Errorf("%s: spans of %d rows, but it computed %d", node, rows[node], f.nodes[node].rows)
		}
	}
	if p := phases["a"]; p[Prefill] != 40 || p[Decode] == 0 {
		t.Errorf("a: %v", p)
	}
	if p := phases["b2"]; p[Replay] != 50 || p[Decode] != 13 {
		t.Errorf("b2: %v", p)
	}
	for _, s := range w.spans {
		if s.Job != j.ID || s.Model != j.Model || s.Began.IsZero() || s.Ended.IsZero() {
			t.Errorf("%+v", s)
		}
	}
}

// An answer that is lost, and one that never begins, are told of too.
func TestSpansOfFailure(t *testing.T) {
	f, w := threeStages(), &witness{}
	r := f.runner(Limits{RescueTime: 1})
	r.Tracer = w
	delete(f.spares, "b")
	if _, _, err := generate(t, r, job(40, 24), func(i int) {
		if i == 10 {
			f.kill("b")
		}
	}); err == nil {
		t.Fatal("it was rescued")
	}
	if s := w.of(SpanAnswer); len(s) != 1 || s[0].Err == nil || s[0].Tokens != 10 {
		t.Errorf("%+v", s)
	}
	f.kill("x")
	if _, err := r.Start(t.Context(), job(3, 3)); err == nil {
		t.Fatal("it began without a copy")
	}
	if s := w.of(SpanQueue); len(s) != 2 || s[1].Err == nil {
		t.Errorf("%+v", s)
	}
}
