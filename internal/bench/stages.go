package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hecate/internal/bench/measure"
	"hecate/internal/engine"
)

// StagesOptions say what to measure; zero values mean the defaults.
type StagesOptions struct {
	Model    string        // Model135M (the default) or a GGUF file
	Time     time.Duration // for all rounds together; default one minute, at least 3 rounds are run
	Tokens   int           // per answer; default 48
	Streams  int           // parallel ones; default 8
	Progress func(string)  // told what goes on; nil: nobody is
}

func (o StagesOptions) filled() StagesOptions {
	if o.Model == "" {
		o.Model = Model135M
	}
	if o.Time <= 0 {
		o.Time = time.Minute
	}
	if o.Tokens <= 0 {
		o.Tokens = 48
	}
	if o.Streams <= 0 {
		o.Streams = 8
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
}

// Bounds of a stages run.
const (
	leastRounds  = 3
	promptTokens = 32 // short: decoding is measured
)

// StagesResult is one run. Rates are tokens per second.
type StagesResult struct {
	Machine measure.Machine `json:"machine"`
	Model   string          `json:"model"`
	Tokens  int             `json:"tokens_per_answer"`
	Streams int             `json:"parallel_streams"`
	Took    time.Duration   `json:"took_ns"`

	Alone     Decoding `json:"engine_alone"`
	OneStage  Decoding `json:"one_stage"`
	TwoStages Decoding `json:"two_stages"`
	Hops      Hops     `json:"hops"`

	measure.Judgement
}

// Decoding is what one contestant did.
type Decoding struct {
	Route    string    `json:"route"`
	One      float64   `json:"one_stream"` // median over the rounds
	Many     float64   `json:"parallel"`   // all streams together, likewise
	Rounds   []float64 `json:"one_stream_rounds"`
	Parallel []float64 `json:"parallel_rounds"`

	// Processor time per token of all processes together, prompts included: it
	// tells more than rates do on a machine with other work. 0: unknown.
	CPUOne    time.Duration `json:"cpu_per_token_one_stream_ns"`
	CPUMany   time.Duration `json:"cpu_per_token_parallel_ns"`
	cpuRounds [2][]float64
}

// Hops are times per token, medians over the rounds; noise can make one negative.
type Hops struct {
	First   time.Duration `json:"first_ns"`           // one stage less the engine alone: gateway, HTTP, and the way to a node and back
	Further time.Duration `json:"further_ns"`         // two stages less one: the way to another node and back, and the cut itself
	Link    time.Duration `json:"link_ns"`            // the gateway's own moving average of a step's wall time less the node's queue and compute
	Nodes   int           `json:"link_nodes_counted"` // over so many nodes
}

// contestant is one of the three ways to decode.
type contestant struct {
	name string
	runner
	into *Decoding
}

// Stages measures what stages cost: the engine alone in this process, through one
// stage, and through two, in turns, with one stream and with several. One of them
// computes at any time. The error is for a run that could not be made; whether
// the floors held is the result's.
func Stages(ctx context.Context, o StagesOptions) (*StagesResult, error) {
	o = o.filled()
	if err := requireFastKernels(); err != nil {
		return nil, err
	}
	if o.Model == ModelDemo {
		return nil, errors.New("the demo model is too small to tell what stages cost: it decodes a token in less time than a hop takes")
	}
	o.Progress("opening the model")
	s, err := openSubject(o.Model)
	if err != nil {
		return nil, err
	}
	r := &StagesResult{Machine: measure.ThisMachine(engine.KernelName()), Model: s.name, Tokens: o.Tokens, Streams: o.Streams}
	field, err := r.enter(ctx, s, o)
	defer func() {
		for _, c := range field {
			c.close()
		}
	}()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for n := 0; n < leastRounds || time.Since(began) < o.Time; n++ {
		if err := round(ctx, s, o, field, n); err != nil {
			return nil, err
		}
	}
	if err := r.link(ctx, field); err != nil {
		return nil, err
	}
	r.Took = time.Since(began)
	r.conclude()
	return r, nil
}

// enter starts the contestants, and lets each warm up. Those it started are
// given also with an error.
func (r *StagesResult) enter(ctx context.Context, s *subject, o StagesOptions) ([]contestant, error) {
	var field []contestant
	for _, c := range []struct {
		name  string
		into  *Decoding
		start func() (runner, error)
	}{
		{"the engine alone", &r.Alone, func() (runner, error) { return newAlone(ctx, s, o.Streams, promptTokens+o.Tokens) }},
		{"one stage", &r.OneStage, func() (runner, error) { return newSwarmRunner(ctx, s, 1) }},
		{"two stages", &r.TwoStages, func() (runner, error) { return newSwarmRunner(ctx, s, 2) }},
	} {
		o.Progress("starting " + c.name)
		run, err := c.start()
		if err != nil {
			return field, err
		}
		field = append(field, contestant{c.name, run, c.into})
		if _, err := run.decode(ctx, prompts(s, 1, 0), 8); err != nil {
			return field, err
		}
		c.into.Route = run.route()
	}
	return field, nil
}

// newSwarmRunner starts a swarm whose only copy has so many stages: one per node,
// since each node's memory is the smallest for which the plan validates.
func newSwarmRunner(ctx context.Context, s *subject, nodes int) (runner, error) {
	l, err := startLocal(ctx, s, "--nodes", fmt.Sprint(nodes), "--copies", "1")
	if err != nil {
		return nil, err
	}
	r := &swarmRunner{local: l, subject: s, pids: []int{l.proc.Pid}}
	st, err := l.status(ctx)
	if err != nil {
		l.stop()
		return nil, err
	}
	for _, n := range st.Nodes {
		r.pids = append(r.pids, n.PID)
	}
	return r, nil
}

func prompts(s *subject, n int, seed uint64) [][]int32 {
	out := make([][]int32, n)
	for i := range out {
		out[i] = s.prompt(promptTokens, seed+uint64(i))
	}
	return out
}

// round lets every contestant decode the same prompts, alone and in parallel. The
// one who begins is another one each time.
func round(ctx context.Context, s *subject, o StagesOptions, field []contestant, n int) error {
	for i := range field {
		c := field[(i+n)%len(field)]
		o.Progress(fmt.Sprintf("round %d: %s", n+1, c.name))
		if err := c.measure(ctx, prompts(s, 1, uint64(n)), o.Tokens, &c.into.Rounds, &c.into.cpuRounds[0]); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if err := c.measure(ctx, prompts(s, o.Streams, uint64(n)), o.Tokens, &c.into.Parallel, &c.into.cpuRounds[1]); err != nil {
			return fmt.Errorf("%s, %d streams: %w", c.name, o.Streams, err)
		}
	}
	return nil
}

// measure decodes once and adds the rate, and the seconds of processor time per
// token.
func (c contestant) measure(ctx context.Context, prompts [][]int32, tokens int, rates, cpu *[]float64) error {
	pids := c.processes()
	before := cpuTime(pids)
	lines, err := c.decode(ctx, prompts, tokens)
	if err != nil {
		return err
	}
	*rates = append(*rates, rate(lines))
	*cpu = append(*cpu, (cpuTime(pids)-before).Seconds()/float64(tokens*len(prompts)))
	return nil
}

// link asks the gateways what they measured of their hops.
func (r *StagesResult) link(ctx context.Context, field []contestant) error {
	sum := 0.0
	for _, c := range field {
		swarm, ok := c.runner.(*swarmRunner)
		if !ok {
			continue
		}
		st, err := swarm.status(ctx)
		if err != nil {
			return err
		}
		for _, n := range st.Nodes {
			if n.RoundTripMS != nil {
				sum += *n.RoundTripMS
				r.Hops.Nodes++
			}
		}
	}
	if r.Hops.Nodes > 0 {
		r.Hops.Link = time.Duration(sum / float64(r.Hops.Nodes) * float64(time.Millisecond))
	}
	return nil
}
