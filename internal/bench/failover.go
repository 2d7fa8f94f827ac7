package bench

import (
	"context"
	"fmt"
	"time"

	"hecate/internal/bench/measure"
	"hecate/internal/engine"
)

// FailoverOptions say what to measure; zero values mean the defaults.
type FailoverOptions struct {
	Runs     int          // of each kind of failure; default 20
	Model    string       // ModelDemo (the default), Model135M or a GGUF file
	Context  int          // tokens of the prompt; 0: a short question
	Tokens   int          // of each answer; default 64
	Seed     uint64       // of the choice of stages and tokens
	Bare     bool         // no shadows: rescues replay the whole context
	NoPrice  bool         // do not measure the price of being ready
	Progress func(string) // told what goes on; nil: nobody is
}

// shortContext is the length of a short question, in tokens, to a model that
// understands no words.
const shortContext = 32

func (o FailoverOptions) filled() FailoverOptions {
	if o.Runs <= 0 {
		o.Runs = 20
	}
	if o.Model == "" {
		o.Model = ModelDemo
	}
	if o.Tokens <= 0 {
		o.Tokens = 64
	}
	if o.Context <= 0 && o.Model != ModelDemo {
		o.Context = shortContext
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
}

// FailoverResult is one run.
type FailoverResult struct {
	Machine measure.Machine `json:"machine"`
	Model   string          `json:"model"`
	Context int             `json:"prompt_tokens"` // 0: short questions
	Tokens  int             `json:"tokens_per_answer"`
	Seed    uint64          `json:"seed"`
	Took    time.Duration   `json:"took_ns"`

	Undisturbed Gaps    `json:"undisturbed"` // the longest gap of answers that nothing befell
	Kill        Outcome `json:"kill"`        // kill -9
	Silence     Outcome `json:"silence"`     // by turns stopped (SIGSTOP) and cut off (its packets dropped)
	Price       Price   `json:"price_of_being_ready"`

	measure.Judgement
}

// Gaps are times between two events of a stream that follow each other.
type Gaps struct {
	Counted int           `json:"counted"`
	P50     time.Duration `json:"p50_ns"`
	P99     time.Duration `json:"p99_ns"`
	Worst   time.Duration `json:"worst_ns"`
}

func gapsOf(all []time.Duration) Gaps {
	return Gaps{len(all), measure.Percentile(all, 0.5), measure.Percentile(all, 0.99), measure.Percentile(all, 1)}
}

// Outcome is what befell answers whose node failed.
type Outcome struct {
	Answers   int            `json:"answers"`
	Missed    int            `json:"missed"` // the failure did not strike; not counted among the answers
	Lost      int            `json:"lost"`
	Identical int            `json:"identical"` // word for word the undisturbed answer
	Gaps      Gaps           `json:"gaps"`      // of those not lost, the longest of each
	Rescues   map[string]int `json:"rescues"`   // by kind
	Before    float64        `json:"tokens_per_s_before"`
	After     float64        `json:"tokens_per_s_after"`
	Stories   []string       `json:"stories,omitempty"` // of answers that were lost or came out different
}

// Price is what keeping boundary states costs while nothing fails.
type Price struct {
	With     float64   `json:"tokens_per_s_with"`
	Without  float64   `json:"tokens_per_s_without"`
	Sittings []float64 `json:"ratio_by_sitting"`
	measure.Judgement
}

// failoverNodes and failoverCopies are the smallest swarm in which any node may
// die.
const (
	failoverNodes  = 3
	failoverCopies = 2
)

// Failover makes nodes fail in the middle of answers and measures, as a client,
// what comes of it. The error is for a run that could not be made, with what was
// measured until then, if anything was; whether the promises held is the result's.
func Failover(ctx context.Context, o FailoverOptions) (*FailoverResult, error) {
	o = o.filled()
	if err := requireFastKernels(); err != nil {
		return nil, err
	}
	o.Progress("opening the model")
	s, err := openSubject(o.Model)
	if err != nil {
		return nil, err
	}
	r := &FailoverResult{
		Machine: measure.ThisMachine(engine.KernelName()), Model: s.name,
		Context: o.Context, Tokens: o.Tokens, Seed: o.Seed,
	}
	began := time.Now()
	err = r.perform(ctx, s, o)
	if err != nil && r.Kill.Answers == 0 {
		return nil, err
	}
	if err == nil && !o.NoPrice {
		r.Price, err = measurePrice(ctx, s, o)
	}
	r.Took = time.Since(began)
	r.conclude()
	return r, err
}

func failoverArgs(more ...string) []string {
	return append([]string{"--nodes", fmt.Sprint(failoverNodes), "--copies", fmt.Sprint(failoverCopies)}, more...)
}

// perform starts a swarm and makes all trials in it.
func (r *FailoverResult) perform(ctx context.Context, s *subject, o FailoverOptions) error {
	o.Progress("starting a swarm of three")
	args := []string{"--allow-chaos"}
	if o.Bare {
		args = append(args, "--shadow-from=-1")
	}
	t, err := (&theatre{subject: s, options: o, known: map[scene]string{}}).another(ctx, args...)
	if err != nil {
		return err
	}
	defer t.stop()
	stages, err := t.stages(ctx)
	if err != nil {
		return err
	}
	if err := t.rehearse(ctx); err != nil {
		return err
	}
	r.Undisturbed = gapsOf(t.calm)
	for _, act := range []struct {
		name    string
		actions []string
		into    *Outcome
	}{{"kill", []string{"kill"}, &r.Kill}, {"silence", []string{"stop", "drop"}, &r.Silence}} {
		draw := newDrawer(t.options, act.actions, stages)
		if *act.into, err = t.act(ctx, act.name, draw); err != nil {
			return fmt.Errorf("%s: %w", act.name, err)
		}
	}
	return nil
}
