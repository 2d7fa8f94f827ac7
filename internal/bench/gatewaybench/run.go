package gatewaybench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"hecate/internal/bench/measure"
)

// Options of a run; zero values mean the defaults.
type Options struct {
	Rounds   int // 0: 7
	Requests int // small ones per round and contestant; 0: 2000
	Progress func(string)
}

// Result is everything that one run has measured.
type Result struct {
	Machine  measure.Machine   `json:"machine"`
	Rounds   int               `json:"rounds"`
	Requests int               `json:"requests"` // small ones, per round and contestant
	Took     time.Duration     `json:"took_ns"`
	Rows     []*Row            `json:"contestants"`
	LeftOut  map[string]string `json:"left_out,omitempty"` // who, and why
	measure.Judgement
}

// Row is one contestant's numbers: medians over the rounds.
type Row struct {
	Name   string                   `json:"name"`
	CPU    map[string]time.Duration `json:"cpu_per_request_ns"` // by kind; absent of direct requests
	Wall   map[string]time.Duration `json:"time_per_request_ns"`
	P99    time.Duration            `json:"event_delay_p99_ns"`
	P50    time.Duration            `json:"event_delay_p50_ns"`
	Before int64                    `json:"memory_before,omitempty"` // bytes
	After  int64                    `json:"memory_after,omitempty"`

	cpu, wall map[string][]float64
	delays    []time.Duration
}

// warmUp requests of each kind are made before anything is measured.
const warmUp = 300

// Run measures all contestants in turns.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.Rounds == 0 {
		o.Rounds = 7
	}
	if o.Requests == 0 {
		o.Requests = 2000
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	r := &Result{Machine: measure.ThisMachine(""), Rounds: o.Rounds, Requests: o.Requests, LeftOut: map[string]string{}}
	began := time.Now()
	dir, err := os.MkdirTemp("", "hecate-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	stage := &stage{r: r, o: o, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * parallel, DisableCompression: true}}}
	defer stage.close()
	if err := stage.enter(ctx, dir); err != nil {
		return nil, err
	}
	if err := stage.play(ctx); err != nil {
		return nil, err
	}
	r.Took = time.Since(began)
	r.conclude()
	return r, nil
}

// stage is where the contestants are.
type stage struct {
	r           *Result
	o           Options
	client      *http.Client
	upstream    *contestant
	contestants []*contestant
}

func (s *stage) close() {
	for _, c := range append(s.contestants, s.upstream) {
		if c != nil {
			c.stop()
		}
	}
}

// enter starts everybody.
func (s *stage) enter(ctx context.Context, dir string) error {
	s.o.Progress("starting")
	var err error
	if s.upstream, err = ownPart(ctx, "upstream", "upstream"); err != nil {
		return fmt.Errorf("start the upstream: %w", err)
	}
	at := s.upstream.url
	s.contestants = append(s.contestants, &contestant{name: "direct", url: at})
	for _, start := range []func() (*contestant, error){
		func() (*contestant, error) { return hecate(ctx, dir, at) },
		func() (*contestant, error) { return ownPart(ctx, bare, "proxy", at) },
	} {
		c, err := start()
		if c != nil {
			s.contestants = append(s.contestants, c)
		}
		if err != nil {
			return err
		}
	}
	for name, config := range map[string]string{"nginx": nginxConfig, "haproxy": haproxyConfig} {
		flag := map[string]string{"nginx": "-c", "haproxy": "-f"}[name]
		c, err := installed(ctx, dir, at, name, config, flag)
		switch {
		case errors.Is(err, errNotInstalled):
			s.r.LeftOut[name] = err.Error()
		case err != nil:
			return err
		default:
			s.contestants = append(s.contestants, c)
		}
	}
	for _, c := range s.contestants {
		s.r.Rows = append(s.r.Rows, &Row{
			Name: c.name, CPU: map[string]time.Duration{}, Wall: map[string]time.Duration{}, cpu: map[string][]float64{}, wall: map[string][]float64{},
		})
	}
	return nil
}

// play makes the rounds; who begins changes from round to round.
func (s *stage) play(ctx context.Context) error {
	for i, c := range s.contestants {
		s.r.Rows[i].Before = c.memory()
		for _, k := range kinds() {
			if _, err := load(ctx, s.client, c.url, k, warmUp); err != nil {
				return c.lost(k, err)
			}
		}
	}
	for round := range s.o.Rounds {
		s.o.Progress(fmt.Sprintf("round %d of %d", round+1, s.o.Rounds))
		for i := range s.contestants {
			at := (i + round) % len(s.contestants)
			if err := s.turn(ctx, s.contestants[at], s.r.Rows[at]); err != nil {
				return fmt.Errorf("through %s: %w", s.contestants[at].name, err)
			}
		}
	}
	for i, c := range s.contestants {
		s.r.Rows[i].After = c.memory()
	}
	return nil
}

// delayStreams are made in each turn, one after the other.
const delayStreams = 10

func (s *stage) turn(ctx context.Context, c *contestant, row *Row) error {
	for _, k := range kinds() {
		n := s.o.Requests * k.share / 100
		before := c.cpu()
		took, err := load(ctx, s.client, c.url, k, n)
		if err != nil {
			return c.lost(k, err)
		}
		row.cpu[k.name] = append(row.cpu[k.name], float64(c.cpu()-before)/float64(n))
		row.wall[k.name] = append(row.wall[k.name], float64(took)/float64(n))
	}
	for range delayStreams {
		d, err := delays(ctx, s.client, c.url, kinds()[1])
		if err != nil {
			return err
		}
		row.delays = append(row.delays, d...)
	}
	return nil
}

// lost words a request that failed, with what the process itself said.
func (c *contestant) lost(k kind, err error) error {
	return fmt.Errorf("%s through %s: %w\n%s", k.name, c.name, err, &c.errs)
}
