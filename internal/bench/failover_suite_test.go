package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// The table is what goes into the documents; a part that fell short makes the
// whole fall short, and a price that was not asked for is not spoken of.
func TestTheSuiteIsATable(t *testing.T) {
	good := func(context int) *FailoverResult {
		o := Outcome{Answers: 3, Identical: 3, Gaps: gapsOf([]time.Duration{10 * time.Millisecond}), Rescues: map[string]int{"splice": 3}, Before: 80, After: 70}
		r := &FailoverResult{Model: Model135M, Context: context, Tokens: 64, Kill: o, Silence: o}
		r.conclude()
		return r
	}
	bad := good(8000)
	bad.Kill.Lost = 1
	bad.conclude()
	for _, c := range []struct {
		results []*FailoverResult
		held    bool
	}{{[]*FailoverResult{good(100), good(8000)}, true}, {[]*FailoverResult{good(100), bad}, false}} {
		s := &SuiteResult{Results: c.results}
		var out bytes.Buffer
		if err := s.Print(&out); err != nil {
			t.Fatal(err)
		}
		if row := "| 135m, 100 tokens | silent | 3 | 0 | 3 | 10ms | 10ms | 10ms | 80 | 70 | 3 splice |"; !strings.Contains(out.String(), row) {
			t.Errorf("no row %q in\n%s", row, out.String())
		}
		if s.Held() != c.held {
			t.Errorf("held %v, want %v", s.Held(), c.held)
		}
		if strings.Contains(out.String(), "price of being ready") {
			t.Errorf("a price that nobody measured:\n%s", out.String())
		}
	}
}

// Of a run that broke off, what was not tried is neither kept nor broken.
func TestARunThatBrokeOff(t *testing.T) {
	r := &FailoverResult{Model: ModelDemo, Tokens: 64, Kill: Outcome{Answers: 3, Identical: 3, Gaps: gapsOf([]time.Duration{10 * time.Millisecond})}}
	r.conclude()
	if !r.Held() {
		t.Errorf("%+v", r.Judgement)
	}
	for _, m := range r.Marks {
		if strings.Contains(m.Name, "silent") {
			t.Errorf("a mark of what was not tried: %s", m.Name)
		}
	}
}
