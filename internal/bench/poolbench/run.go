package poolbench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// part is a measurement that all contestants take.
type part struct {
	name    string
	rounds  func(Options) int
	measure func(context.Context, entry, Options) error
}

func everyRound(o Options) int { return o.Rounds }
func once(Options) int         { return 1 }

var common = []part{
	{PartThroughput, everyRound, measureLarge},
	{PartSmall, everyRound, measureSmall},
	{PartRoundTrip, everyRound, measureRoundTrip},
	{PartStall, everyRound, measureStall},
	{PartIdle, once, measureIdle},
}

// own are the parts that only the pool has.
var own = []struct {
	name    string
	measure func(context.Context, identities, Options, *Result) error
}{
	{PartRestore, measureRestore},
	{PartSilence, measureSilence},
	{PartSwap, measureSwap},
}

// Run measures. A part that fails is named in Result.Faults and the others go on;
// the error is for a run that could not begin, or was cancelled.
func Run(ctx context.Context, o Options) (*Result, error) {
	o, err := o.filled()
	if err != nil {
		return nil, fmt.Errorf("pool benchmark: %w", err)
	}
	id, err := newIdentities()
	if err != nil {
		return nil, fmt.Errorf("pool benchmark: %w", err)
	}
	r := newResult()
	if err := runCommon(ctx, id, o, r); err != nil {
		return nil, fmt.Errorf("pool benchmark: %w", err)
	}
	for _, p := range own {
		if o.wants(p.name) && ctx.Err() == nil {
			o.Progress(p.name)
			r.fault(p.name, p.measure(ctx, id, o, r))
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("pool benchmark: %w", context.Cause(ctx))
	}
	r.Took = time.Since(r.At)
	r.conclude()
	return r, nil
}

func (r *Result) fault(what string, err error) {
	if err != nil {
		r.Faults = append(r.Faults, what+": "+err.Error())
	}
}

// runCommon lets the contestants take turns in every part.
func runCommon(ctx context.Context, id identities, o Options, r *Result) (err error) {
	if !anyCommon(o) {
		return nil
	}
	entries, err := enter(id, r)
	defer func() {
		for _, e := range entries {
			r.fault("closing "+e.name, e.t.close())
		}
	}()
	if err != nil {
		return err
	}
	for _, p := range common {
		if !o.wants(p.name) {
			continue
		}
		for round := range p.rounds(o) {
			for _, e := range entries {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				o.Progress(fmt.Sprintf("%s, round %d, %s", p.name, round+1, e.name))
				r.fault(p.name+" of "+e.name, p.measure(ctx, e, o))
			}
		}
	}
	return nil
}

func anyCommon(o Options) bool {
	for _, p := range common {
		if o.wants(p.name) {
			return true
		}
	}
	return false
}

// enter starts every contestant.
func enter(id identities, r *Result) ([]entry, error) {
	starts := []struct {
		name  string
		start func(identities) (transport, error)
	}{{nameTLS, newBareTLS}, {nameYamux, newYamux}, {nameGRPC, newGRPC}, {namePool, newHecate}}
	r.Contestants = make([]Contestant, len(starts))
	var entries []entry
	var faults []error
	for i, s := range starts {
		r.Contestants[i].Name = s.name
		t, err := s.start(id)
		if err != nil {
			faults = append(faults, fmt.Errorf("starting %s: %w", s.name, err))
			continue
		}
		entries = append(entries, entry{s.name, t, &r.Contestants[i]})
	}
	return entries, errors.Join(faults...)
}

// conclude computes medians and ratios from the rounds.
func (r *Result) conclude() {
	for i := range r.Contestants {
		c := &r.Contestants[i]
		c.Throughput, c.SmallRate = c.median("throughput"), c.median("small")
		c.CPUPerSmall, c.AllocsSmall = time.Duration(c.median("cpu small")), c.median("allocs small")
		c.CPUPerLarge, c.AllocsLarge = time.Duration(c.median("cpu large")), c.median("allocs large")
		c.P50, c.P99 = time.Duration(c.median("p50")), time.Duration(c.median("p99"))
		c.StallBefore, c.StallAfter = time.Duration(c.median("stall before")), time.Duration(c.median("stall after"))
		c.StallEffect, c.IdleBytes = c.median("stall effect"), c.median("idle")
	}
	r.ratio("throughput, pool / bare TLS", nameTLS, "throughput", 0.8, 0.9)
	r.ratio("small frames, pool / gRPC", nameGRPC, "small", 1.2, 2)
	r.ratio("small frames, pool / yamux", nameYamux, "small", 1, 1.5)
	if p := r.contestant(namePool); p != nil && p.StallEffect > 0 {
		r.Ratios = append(r.Ratios, Ratio{"neighbours' p99, stalled / not", p.StallEffect, 1.5, 1.2, true})
	}
	if v := r.roundRatio(nameTLS, "cpu large"); v > 0 {
		r.CPULarge = 1 / v
	}
	if base := r.contestant(nameTLS); base != nil {
		r.Noise = max(spread(base.rounds["throughput"]), spread(base.rounds["small"]))
		if base.StallEffect > 0 { // of connections that have nothing to do with each other
			r.Noise = max(r.Noise, math.Abs(base.StallEffect-1))
		}
	}
}

// ratio is the median over the rounds of pool / other, each round by itself: what
// disturbs one round disturbs both.
func (r *Result) ratio(name, other, key string, floor, aim float64) {
	if v := r.roundRatio(other, key); v > 0 {
		r.Ratios = append(r.Ratios, Ratio{Name: name, Value: v, Floor: floor, Aim: aim})
	}
}

// roundRatio is 0 when one of the two was not measured in every round.
func (r *Result) roundRatio(other, key string) float64 {
	p, q := r.contestant(namePool), r.contestant(other)
	if p == nil || q == nil || len(p.rounds[key]) != len(q.rounds[key]) {
		return 0
	}
	var each []float64
	for i, v := range p.rounds[key] {
		each = append(each, v/q.rounds[key][i])
	}
	return median(each)
}
