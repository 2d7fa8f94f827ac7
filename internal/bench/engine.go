package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"hecate/internal/bench/llamacpp"
	"hecate/internal/bench/measure"
	"hecate/internal/demomodel"
	"hecate/internal/engine"
)

// EngineOptions say what to measure; zero values mean the defaults.
type EngineOptions struct {
	Models   []string      // names or GGUF files; default ModelDemo and Model135M
	Time     time.Duration // for all rounds together; default one minute; at least 3 rounds are made
	Best     bool          // each side uses all that the processor has, instead of AVX2 only
	Progress func(string)  // told what goes on; nil: nobody is
}

func (o EngineOptions) filled() EngineOptions {
	if len(o.Models) == 0 {
		o.Models = []string{ModelDemo, Model135M}
	}
	if o.Time <= 0 {
		o.Time = time.Minute
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
}

const (
	promptRows  = 384 // of all sequences together
	answerSteps = 48
	batchRows   = 512 // of llama.cpp; ours has its own default
)

// sequenceCounts are how many sequences are computed side by side.
var sequenceCounts = []int{1, 8}

// EngineResult is one run: our engine beside llama.cpp, both on one thread.
type EngineResult struct {
	Machine      measure.Machine `json:"machine"`
	Peer         string          `json:"compared_with"`
	Instructions string          `json:"instructions"` // of our products
	Took         time.Duration   `json:"took_ns"`
	Models       []*EngineModel  `json:"models"`

	measure.Judgement
}

// EngineModel is what was measured on one model.
type EngineModel struct {
	Name  string        `json:"name"`
	Tests []*EngineTest `json:"tests"`

	judged bool // the marks of the project are for this model
}

// EngineTest is one thing that both sides did in every round.
type EngineTest struct {
	Name      string `json:"name"` // prefill or decode
	Sequences int    `json:"sequences"`
	Ours      Pace   `json:"ours"`
	Theirs    Pace   `json:"theirs"`

	Ratio    float64 `json:"ratio"`     // ours over theirs, the median of the rounds' own
	CPURatio float64 `json:"cpu_ratio"` // the same of tokens per second of processor time
}

// Pace is tokens per second.
type Pace struct {
	Rate   float64   `json:"tokens_per_s"` // the median over the rounds
	Rounds []float64 `json:"rounds"`
	CPU    []float64 `json:"rounds_per_cpu_s"` // tokens per second of processor time
}

func (p *Pace) add(tokens int, t llamacpp.Took) {
	p.Rounds = append(p.Rounds, float64(tokens)/t.Wall.Seconds())
	p.CPU = append(p.CPU, float64(tokens)/t.CPU.Seconds())
}

// Engine measures our engine against llama.cpp: the same models, one thread each,
// taking turns. The error is for a run that could not be made; whether the floors
// held is the result's.
func Engine(ctx context.Context, o EngineOptions) (*EngineResult, error) {
	o = o.filled()
	if err := requireFastKernels(); err != nil {
		return nil, err
	}
	lib := llamacpp.Haswell
	if o.Best {
		lib = llamacpp.Best
	} else if before := engine.Instructions(); before != "none" {
		engine.UseInstructions("avx2")
		defer engine.UseInstructions(before)
	}
	dir, err := llamacpp.Install(ctx, lib, o.Progress)
	if err != nil {
		return nil, err
	}
	r := &EngineResult{
		Machine: measure.ThisMachine(engine.KernelName()), Instructions: engine.Instructions(),
		Peer: fmt.Sprintf("llama.cpp of node-llama-cpp %s, %s library", llamacpp.Version, lib),
	}
	began := time.Now()
	for _, model := range o.Models {
		m, err := engineModel(ctx, dir, model, o.Time/time.Duration(len(o.Models)), o.Progress)
		if err != nil {
			return nil, err
		}
		r.Models = append(r.Models, m)
	}
	r.Took = time.Since(began)
	r.conclude()
	return r, nil
}

// engineModel measures one model, several times anew: a process keeps its luck.
func engineModel(ctx context.Context, dir, model string, most time.Duration, progress func(string)) (*EngineModel, error) {
	s, err := openSubject(model)
	if err != nil {
		return nil, err
	}
	remove, err := s.asFile()
	if err != nil {
		return nil, err
	}
	defer remove()
	m := &EngineModel{Name: s.name, judged: model == Model135M}
	for _, n := range sequenceCounts {
		m.Tests = append(m.Tests, &EngineTest{Name: "prefill", Sequences: n}, &EngineTest{Name: "decode", Sequences: n})
	}
	began := time.Now()
	for k := range sittings {
		progress(fmt.Sprintf("%s: starting both engines, %d of %d times", s.name, k+1, sittings))
		if err := m.sit(ctx, s, dir, k, began.Add(most*time.Duration(k+1)/sittings)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// sit starts both, lets them take turns until a time, at least once, and ends them.
func (m *EngineModel) sit(ctx context.Context, s *subject, dir string, k int, until time.Time) error {
	most := sequenceCounts[len(sequenceCounts)-1]
	ours, err := newAlone(ctx, s, most, promptRows+answerSteps)
	if err != nil {
		return err
	}
	defer ours.close()
	theirs, err := llamacpp.Start(ctx, llamacpp.Options{
		Dir: dir, Model: s.path, Sequences: most, Context: promptRows + answerSteps, Batch: batchRows,
	})
	if err != nil {
		return err
	}
	defer theirs.Close()
	sides := []func(llamacpp.Task) (llamacpp.Times, error){
		func(t llamacpp.Task) (llamacpp.Times, error) { return ours.follow(ctx, t) }, theirs.Run,
	}
	for _, side := range sides { // warm up
		if _, err := side(task(s, 2, 8, 2, 0)); err != nil {
			return err
		}
	}
	for again := true; again; again = time.Now().Before(until) {
		k++
		if err := m.round(s, sides, k); err != nil {
			return err
		}
	}
	return nil
}

// round lets both compute the same, the k-th first.
func (m *EngineModel) round(s *subject, sides []func(llamacpp.Task) (llamacpp.Times, error), k int) error {
	for i, n := range sequenceCounts {
		t := task(s, n, promptRows/n, answerSteps, uint64(k))
		var times [2]llamacpp.Times
		for j := range sides {
			side := (j + k) % len(sides)
			var err error
			if times[side], err = sides[side](t); err != nil {
				return err
			}
		}
		prefill, decode := m.Tests[2*i], m.Tests[2*i+1]
		for side, paces := range [2][2]*Pace{{&prefill.Ours, &decode.Ours}, {&prefill.Theirs, &decode.Theirs}} {
			paces[0].add(promptRows, times[side].Prefill)
			paces[1].add(n*answerSteps, times[side].Decode)
		}
	}
	return nil
}

// task is n sequences of random prompts and answers.
func task(s *subject, n, rows, steps int, seed uint64) llamacpp.Task {
	var t llamacpp.Task
	for i := range n {
		all := s.prompt(rows+steps, seed*uint64(n)+uint64(i))
		t.Prompts, t.Answers = append(t.Prompts, all[:rows]), append(t.Answers, all[rows:])
	}
	return t
}

// asFile writes the demo model, which is no file otherwise.
func (s *subject) asFile() (remove func(), err error) {
	if s.path != "" {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "hecate-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the demo model: %w", err)
	}
	s.path = filepath.Join(dir, "demo.gguf")
	if err := os.WriteFile(s.path, demomodel.GGUF(), 0o600); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("write the demo model: %w", err)
	}
	return func() { _ = os.RemoveAll(dir) }, nil
}
