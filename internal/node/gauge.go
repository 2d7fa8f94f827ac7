package node

import (
	"sync"
	"time"

	"hecate/internal/stage"
	"hecate/swarm"
)

// fullQueue is how many waiting steps add 1 to the load: about as many as one
// pass takes together.
const fullQueue = 8

// gauge measures this node: what it did, how long it took, how busy it is.
type gauge struct {
	mu struct {
		sync.Mutex
		paused   bool
		latency  swarm.Reading // ms per one-row step, queue and compute
		last     float64       // ms, the newest sample
		load     swarm.Reading
		lastBusy time.Duration
		lastTick time.Time

		sessions       int
		served, failed int64
		rows           map[fragmentKey]int64
	}
}

// fragmentKey names layers of a model, for counting what went through them.
type fragmentKey struct {
	model       string
	first, last int
}

func newGauge() *gauge {
	g := &gauge{}
	g.mu.rows = map[fragmentKey]int64{}
	g.mu.lastTick = time.Now()
	return g
}

func (g *gauge) opened() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.sessions++
}

func (g *gauge) closed(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.sessions--
	if err != nil {
		g.mu.failed++
	} else {
		g.mu.served++
	}
}

// stepped takes one finished step. What a shadow computes is no row of an answer:
// rows are those through which answers went. The latency that routing prices is
// that of a decode step: one row, waiting included.
func (g *gauge) stepped(o stage.Open, r stage.Result) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !o.Shadow {
		g.mu.rows[fragmentKey{o.Model, o.First, o.Last}] += int64(r.Rows)
	}
	if r.Rows != 1 {
		return
	}
	g.mu.last = float64(r.Timing.Queue+r.Timing.Compute) / float64(time.Millisecond)
	g.mu.latency = g.mu.latency.Observe(g.mu.last)
}

// tick takes the engine's total busy time and the steps waiting now.
func (g *gauge) tick(busy time.Duration, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	span := now.Sub(g.mu.lastTick)
	if span <= 0 {
		return
	}
	share := float64(busy-g.mu.lastBusy) / float64(span)
	g.mu.load = g.mu.load.Observe(max(share, 0) + float64(max(waiting-fullQueue, 0))/fullQueue)
	g.mu.lastBusy, g.mu.lastTick = busy, now
}

func (g *gauge) pause(paused bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.paused = paused
}

func (g *gauge) isPaused() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.paused
}

// answers says that sessions are open.
func (g *gauge) answers() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.sessions > 0
}
