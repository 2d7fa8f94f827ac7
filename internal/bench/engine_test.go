package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"hecate/internal/bench/llamacpp"
	"hecate/internal/bench/measure"
	"hecate/internal/engine"
)

// engineResult has rounds in which llama.cpp makes 100 tokens per second.
func engineResult(model string, theirs []float64, ratio float64) *EngineResult {
	m := &EngineModel{Name: model, judged: model == Model135M}
	for _, n := range sequenceCounts {
		for _, name := range []string{"prefill", "decode"} {
			x := &EngineTest{Name: name, Sequences: n}
			for _, rate := range theirs {
				rate *= float64(n)
				x.Theirs.add(1000, llamacpp.Took{Wall: inSeconds(1000 / rate), CPU: inSeconds(1000 / rate)})
				x.Ours.add(1000, llamacpp.Took{Wall: inSeconds(1000 / rate / ratio), CPU: inSeconds(2000 / rate / ratio)})
			}
			m.Tests = append(m.Tests, x)
		}
	}
	r := &EngineResult{Models: []*EngineModel{m}, Took: time.Minute}
	r.conclude()
	return r
}

func TestEnginesAreJudged(t *testing.T) {
	for _, c := range []struct {
		name, model string
		theirs      []float64
		ratio       float64
		verdict     measure.Verdict // of all marks; "": there are none
		held        bool
	}{
		{"faster", Model135M, []float64{100, 120}, 1.2, measure.AimReached, true},
		{"a little slower", Model135M, []float64{100, 120}, 0.8, measure.FloorReached, true},
		{"much slower", Model135M, []float64{100, 120}, 0.7, measure.BelowFloor, false},
		{"nobody knows", Model135M, []float64{100, 220}, 1.2, measure.NoVerdict, false},
		{"no marks are set for other models", ModelDemo, []float64{100, 220}, 0.5, "", true},
	} {
		r := engineResult(c.model, c.theirs, c.ratio)
		if r.Held() != c.held || (len(r.Marks) == 0) != (c.verdict == "") {
			t.Errorf("%s: held %v with %d marks", c.name, r.Held(), len(r.Marks))
		}
		for i, v := range r.Verdicts {
			if v != c.verdict {
				t.Errorf("%s: %s at %.2f: %s, want %s", c.name, r.Marks[i].Name, r.Marks[i].Value, v, c.verdict)
			}
		}
	}
}

func TestEngineResultIsPrintedAndEncoded(t *testing.T) {
	r := engineResult(Model135M, []float64{100, 100}, 1.25)
	var b bytes.Buffer
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"135m, prefill of 1 sequence", "125.0", "100.0", "1.25", "0.62", "135m, 2 rounds: 8 sequences against 1 gain 8.00 here, 8.00 there", "floor 0.75, aim 0.9", "noise"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	var back struct {
		Models []struct {
			Tests []struct {
				Ratio float64 `json:"ratio"`
			} `json:"tests"`
		} `json:"models"`
		Verdicts []string `json:"verdicts"`
	}
	encoded, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(encoded, &back)
	}
	if err != nil || len(back.Models) != 1 || len(back.Models[0].Tests) != 4 || back.Models[0].Tests[0].Ratio < 1.249 || len(back.Verdicts) != 4 {
		t.Errorf("%s: %v", encoded, err)
	}
}

// Both sides compute tasks of the same size, whose tokens are all different.
func TestTasksAreTheSameForBoth(t *testing.T) {
	s := &subject{size: 50000}
	for _, n := range sequenceCounts {
		a := task(s, n, promptRows/n, answerSteps, 3)
		if len(a.Prompts) != n || len(a.Prompts[0]) != promptRows/n || len(a.Answers[n-1]) != answerSteps {
			t.Errorf("%d sequences: %d prompts of %d, answers of %d", n, len(a.Prompts), len(a.Prompts[0]), len(a.Answers[n-1]))
		}
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(task(s, n, promptRows/n, answerSteps, 3))
		z, _ := json.Marshal(task(s, n, promptRows/n, answerSteps, 4))
		if !bytes.Equal(x, y) || bytes.Equal(x, z) {
			t.Errorf("%d sequences: tasks must differ by round and by nothing else", n)
		}
	}
}

func TestEngineNeedsItsTools(t *testing.T) {
	if !engine.FastKernels {
		if _, err := Engine(t.Context(), EngineOptions{}); !errors.Is(err, ErrSlowKernels) {
			t.Errorf("%v", err)
		}
		return
	}
	t.Setenv("PATH", t.TempDir())
	before := engine.Instructions()
	if _, err := Engine(t.Context(), EngineOptions{}); !errors.Is(err, llamacpp.ErrMissing) && !strings.Contains(err.Error(), "linux/amd64 only") {
		t.Errorf("without Node.js: %v", err)
	}
	if now := engine.Instructions(); now != before {
		t.Errorf("the benchmark leaves the engine with %s instead of %s", now, before)
	}
}
