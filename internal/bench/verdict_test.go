package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"hecate/internal/bench/measure"
	"hecate/internal/engine"
)

func stagesResult(alone, one, two []float64, many float64) *StagesResult {
	r := &StagesResult{Streams: 8}
	r.Alone.One.Rounds, r.OneStage.One.Rounds, r.TwoStages.One.Rounds = alone, one, two
	for _, d := range []*Decoding{&r.Alone, &r.OneStage, &r.TwoStages} {
		for part := range slices.Chunk(d.One.Rounds, singles) {
			d.Many.Rounds = append(d.Many.Rounds, many*measure.Median(part))
		}
	}
	if len(r.Alone.Many.Rounds) == 1 { // one round more, like the first
		for _, d := range []*Decoding{&r.Alone, &r.OneStage, &r.TwoStages} {
			d.One.Rounds = append(d.One.Rounds, d.One.Rounds...)
			d.Many.Rounds = append(d.Many.Rounds, d.Many.Rounds...)
		}
	}
	r.conclude()
	return r
}

func TestStagesAreJudged(t *testing.T) {
	for _, c := range []struct {
		name            string
		alone, one, two []float64
		many            float64
		verdicts        []measure.Verdict
		held            bool
	}{
		{"good", []float64{100, 50, 100}, []float64{98, 49, 98}, []float64{93, 46.5, 93}, 2, []measure.Verdict{measure.AimReached, measure.AimReached, measure.FloorReached}, true},
		{"floors", []float64{100, 100, 100}, []float64{96, 95.5, 96}, []float64{86, 86, 86}, 1.8, []measure.Verdict{measure.FloorReached, measure.FloorReached, measure.FloorReached}, true},
		{"below", []float64{100, 100, 100}, []float64{94, 94, 99}, []float64{86, 80, 84}, 1.7, []measure.Verdict{measure.BelowFloor, measure.BelowFloor, measure.BelowFloor}, false},
		{"loud", []float64{100, 45, 100}, []float64{98, 44, 98}, []float64{93, 42, 93}, 2, []measure.Verdict{measure.NoVerdict, measure.NoVerdict, measure.NoVerdict}, false},
	} {
		r := stagesResult(c.alone, c.one, c.two, c.many)
		for i, v := range c.verdicts {
			if r.Verdicts[i] != v {
				t.Errorf("%s: %s is %s at %.3f, want %s", c.name, r.Marks[i].Name, r.Verdicts[i], r.Marks[i].Value, v)
			}
		}
		if r.Held() != c.held {
			t.Errorf("%s: held %v", c.name, r.Held())
		}
	}
}

// What slows one round slows both sides of it: the ratio does not move.
func TestRatiosAreThoseOfRounds(t *testing.T) {
	r := stagesResult([]float64{100, 60, 80}, []float64{96, 57.6, 76.8}, []float64{90, 54, 72}, 2)
	if v := r.Marks[0].Value; v < 0.9599 || v > 0.9601 {
		t.Errorf("%g, want 0.96", v)
	}
	want := time.Second/76800*1000 - time.Second/80 // of the middle round
	if d := r.Hops.First - want; d < -time.Microsecond || d > time.Microsecond {
		t.Errorf("a hop takes %s, want %s", r.Hops.First, want)
	}
}

func outcome(p50, p99, worst time.Duration, lost int) Outcome {
	return Outcome{Answers: 20, Lost: lost, Identical: 20 - lost, Gaps: Gaps{20, p50, p99, worst}}
}

func TestFailoverIsJudged(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name          string
		kill, silence Outcome
		context       int
		held          bool
		marks         int
	}{
		{"good", outcome(200*ms, 400*ms, 500*ms, 0), outcome(900*ms, 1400*ms, 1400*ms, 0), 0, true, 7},
		{"median over the aim", outcome(400*ms, 900*ms, 1500*ms, 0), outcome(900*ms, 1400*ms, 2400*ms, 0), 100, true, 7},
		{"kill too slow", outcome(200*ms, 1100*ms, 1100*ms, 0), outcome(900*ms, 1400*ms, 1400*ms, 0), 0, false, 7},
		{"silence too slow", outcome(200*ms, 400*ms, 500*ms, 0), outcome(900*ms, 1400*ms, 2600*ms, 0), 0, false, 7},
		{"long prompts may take longer", outcome(20000*ms, 20000*ms, 20000*ms, 0), outcome(20000*ms, 20000*ms, 20000*ms, 0), 8000, true, 4},
		{"nothing may be lost", outcome(200*ms, 400*ms, 500*ms, 1), outcome(900*ms, 1400*ms, 1400*ms, 0), 8000, false, 4},
	} {
		r := &FailoverResult{Context: c.context, Kill: c.kill, Silence: c.silence}
		r.conclude()
		if r.Held() != c.held || len(r.Marks) != c.marks {
			t.Errorf("%s: held %v with %d marks, want %v with %d: %v", c.name, r.Held(), len(r.Marks), c.held, c.marks, r.Verdicts)
		}
	}
}

func TestAnswersThatCameOutDifferentAreNoticed(t *testing.T) {
	r := &FailoverResult{Kill: outcome(1, 1, 1, 0), Silence: outcome(1, 1, 1, 0)}
	r.Silence.Identical--
	r.conclude()
	if r.Held() {
		t.Error("held though one text is another")
	}
}

func TestResultsArePrintedAndEncoded(t *testing.T) {
	stages := stagesResult([]float64{100, 100}, []float64{96, 96}, []float64{90, 90}, 2)
	failover := &FailoverResult{Model: "demo", Kill: outcome(1, 2, 3, 1), Silence: outcome(4, 5, 6, 0)}
	failover.Kill.Stories = []string{"kill of stage 0 at token 3: lost"}
	failover.conclude()
	for _, c := range []struct {
		print func(io.Writer) error
		want  []string
	}{
		{stages.Print, []string{"through two stages", "96.0", "0.96", "floor 0.95, aim 0.97", "noise"}},
		{failover.Print, []string{"killed (-9)", "short questions", "answers lost, node killed", "below the floor", "stage 0 at token 3"}},
	} {
		var b bytes.Buffer
		if err := c.print(&b); err != nil {
			t.Fatal(err)
		}
		for _, w := range c.want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%q is missing in\n%s", w, b.String())
			}
		}
	}
	var back struct {
		OneStage struct {
			One struct {
				Rate float64 `json:"tokens_per_s"`
			} `json:"one_stream"`
		} `json:"one_stage"`
		Verdicts []string
	}
	b, err := json.Marshal(stages)
	if err == nil {
		err = json.Unmarshal(b, &back)
	}
	if err != nil || back.OneStage.One.Rate != 96 || len(back.Verdicts) != 3 {
		t.Errorf("%s: %v", b, err)
	}
}

func TestSlowKernelsAreRefused(t *testing.T) {
	if engine.FastKernels {
		t.Skip("this build has fast kernels")
	}
	if _, err := Stages(t.Context(), StagesOptions{}); !errors.Is(err, ErrSlowKernels) {
		t.Errorf("stages: %v", err)
	}
	if _, err := Failover(t.Context(), FailoverOptions{}); !errors.Is(err, ErrSlowKernels) {
		t.Errorf("failover: %v", err)
	}
}
