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
	Time     time.Duration // for all rounds together; default one minute; at least 3 rounds are made
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

const (
	// sittings is how often everything is started anew, each time another one
	// first: a process is a little faster or slower for all its life, by where
	// its memory came to lie, and the first more often the slower one.
	sittings     = 3
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

	links []float64 // seconds, by node
}

// Decoding is what one contestant did.
type Decoding struct {
	Route string `json:"route"`
	One   Series `json:"one_stream"` // three for each of the parallel ones
	Many  Series `json:"parallel_streams"`
}

// Series is one thing measured in every round.
type Series struct {
	Rate   float64   `json:"tokens_per_s"` // all streams together; the median over the rounds
	Rounds []float64 `json:"rounds"`

	// CPU is the processor time per token of all processes together, prompts
	// included, likewise: it tells more than a rate does on a machine with other
	// work. 0: the system does not say.
	CPU       time.Duration `json:"cpu_per_token_ns"`
	cpuRounds []float64     // seconds
}

// Hops are times per token, medians over the rounds; noise can make one negative.
type Hops struct {
	First   time.Duration `json:"first_ns"`   // one stage less the engine alone: gateway, HTTP, and the way to a node and back
	Further time.Duration `json:"further_ns"` // two stages less one: the way to another node and back, and the cut itself
	Link    time.Duration `json:"link_ns"`    // the gateway's own moving average of a step's wall time less the node's queue and compute
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
	began := time.Now()
	for k := range sittings {
		if err := r.sit(ctx, s, o, k, began.Add(o.Time*time.Duration(k+1)/sittings)); err != nil {
			return nil, err
		}
	}
	r.Took = time.Since(began)
	r.conclude()
	return r, nil
}

// sit starts all contestants, the k-th first, lets them take turns until a time, at least once,
// and ends them.
func (r *StagesResult) sit(ctx context.Context, s *subject, o StagesOptions, k int, until time.Time) error {
	field, err := r.enter(ctx, s, o, k)
	defer func() {
		for _, c := range field {
			c.close()
		}
	}()
	if err != nil {
		return err
	}
	for again := true; again; again = time.Now().Before(until) {
		if err := round(ctx, s, o, field, len(r.Alone.Many.Rounds)); err != nil {
			return err
		}
	}
	return r.link(ctx, s, o, field)
}

// enter starts the contestants, the first-th first, and lets each warm up. Those it started are
// given also with an error.
func (r *StagesResult) enter(ctx context.Context, s *subject, o StagesOptions, first int) ([]contestant, error) {
	entries := []struct {
		name  string
		into  *Decoding
		start func() (runner, error)
	}{
		{"the engine alone", &r.Alone, func() (runner, error) { return newAlone(ctx, s, o.Streams, promptTokens+o.Tokens) }},
		{"one stage", &r.OneStage, func() (runner, error) { return newSwarmRunner(ctx, s, 1) }},
		{"two stages", &r.TwoStages, func() (runner, error) { return newSwarmRunner(ctx, s, 2) }},
	}
	var field []contestant
	for i := range entries {
		e := entries[(i+first)%len(entries)]
		o.Progress("starting " + e.name)
		run, err := e.start()
		if err != nil {
			return field, err
		}
		field = append(field, contestant{e.name, run, e.into})
		if _, err := run.decode(ctx, prompts(s, 1, 0), 8); err != nil {
			return field, err
		}
		e.into.Route = run.route()
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

// singles is how often a round measures one stream: it takes a fraction of the
// time that several take.
const singles = 3

// round lets every contestant decode the same prompts, one stream and several.
// They take turns as often as they can, and the one who begins is another one
// each time: what disturbs the machine for a moment shall disturb them all.
func round(ctx context.Context, s *subject, o StagesOptions, field []contestant, n int) error {
	turn := func(i, streams int, into func(*Decoding) *Series) error {
		for k := range field {
			c := field[(k+i)%len(field)]
			o.Progress(fmt.Sprintf("round %d, streams: %d, %s", n+1, streams, c.name))
			if err := c.measure(ctx, prompts(s, streams, uint64(i)), o.Tokens, into(c.into)); err != nil {
				return fmt.Errorf("%s, streams: %d: %w", c.name, streams, err)
			}
		}
		return nil
	}
	for i := range singles {
		if err := turn(n*singles+i, 1, func(d *Decoding) *Series { return &d.One }); err != nil {
			return err
		}
	}
	return turn(n, o.Streams, func(d *Decoding) *Series { return &d.Many })
}

// measure decodes once and adds the rate and the processor time per token.
func (c contestant) measure(ctx context.Context, prompts [][]int32, tokens int, into *Series) error {
	pids := c.processes()
	before := cpuTime(pids)
	lines, err := c.decode(ctx, prompts, tokens)
	if err != nil {
		return err
	}
	into.Rounds = append(into.Rounds, rate(lines))
	into.cpuRounds = append(into.cpuRounds, (cpuTime(pids)-before).Seconds()/float64(tokens*len(prompts)))
	return nil
}

// link asks the gateways what they measured of their hops while one stream ran.
func (r *StagesResult) link(ctx context.Context, s *subject, o StagesOptions, field []contestant) error {
	for _, c := range field {
		swarm, ok := c.runner.(*swarmRunner)
		if !ok {
			continue
		}
		if _, err := swarm.decode(ctx, prompts(s, 1, 0), o.Tokens); err != nil {
			return err
		}
		st, err := swarm.status(ctx)
		if err != nil {
			return err
		}
		for _, n := range st.Nodes {
			if n.RoundTripMS != nil {
				r.links = append(r.links, *n.RoundTripMS/1000)
			}
		}
	}
	return nil
}
