package dispatch

import (
	"time"

	"hecate/internal/gateway/answer"
	"hecate/swarm"
)

// Patience with a step: so many times what such a step usually takes, within
// bounds. A silent connection is noticed sooner, by the data plane's pings;
// these limits are for a node that answers pings and computes nothing.
const (
	patienceFactor = 12
	leastPatience  = 2 * time.Second
	mostPatience   = 10 * time.Minute
	// Before anything was measured: a first step may have to warm caches, and a
	// row of a large model may take a while on a small machine.
	firstPatience = 20 * time.Second
	rowPatience   = 200 * time.Millisecond
)

// measures are moving averages of what steps on one node took.
type measures struct {
	layer   swarm.Reading // ms per layer of a one-row step, computing alone
	prefill swarm.Reading // ms per layer and 1024 rows, computing alone
	link    swarm.Reading // ms of a one-row step that the node did not account for: the way there and back
	wall    swarm.Reading // ms per layer of a one-row step, waiting included
	rowWall swarm.Reading // ms per layer and row of longer steps, waiting included
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// take adds one step.
func (m *measures) take(s answer.Sample) {
	if s.Rows < 1 || s.Layers < 1 {
		return
	}
	layers := float64(s.Layers)
	compute := milliseconds(s.Timing.Compute) / layers
	wall := milliseconds(s.Wall) / layers
	if s.Rows == 1 {
		m.layer = m.layer.Observe(compute)
		m.wall = m.wall.Observe(wall)
		m.link = m.link.Observe(max(0, milliseconds(s.Wall-s.Timing.Queue-s.Timing.Compute)))
		return
	}
	m.prefill = m.prefill.Observe(compute * 1024 / float64(s.Rows))
	m.rowWall = m.rowWall.Observe(wall / float64(s.Rows))
}

// signals is what routing prices.
func (m *measures) signals() swarm.Signals {
	return swarm.Signals{LayerMS: m.layer, PrefillMS: m.prefill, RoundTripMS: m.link}
}

// patience is how long a step of rows over layers may take.
func (m *measures) patience(rows, layers int) time.Duration {
	usual, known := m.usual(rows, layers)
	if !known {
		return firstPatience + time.Duration(rows)*rowPatience
	}
	return min(max(patienceFactor*usual, leastPatience), mostPatience)
}

// RoundTrip is the measured way to a node and back, in milliseconds.
func (d *Dispatcher) RoundTrip(node string) swarm.Reading {
	d.mu.Lock()
	defer d.mu.Unlock()
	if b := d.mu.nodes[node]; b != nil {
		return b.measures.link
	}
	return swarm.Reading{}
}

// usual is what a step of rows over layers takes, waiting included.
func (m *measures) usual(rows, layers int) (time.Duration, bool) {
	perLayer := m.wall
	if rows > 1 {
		perLayer = swarm.Reading{Value: m.rowWall.Value * float64(rows), Known: m.rowWall.Known}
	}
	return time.Duration(perLayer.Value * float64(layers) * float64(time.Millisecond)), perLayer.Known
}

// Usual is how long a step usually takes at a node; false while nobody knows.
func (d *Dispatcher) Usual(node string, rows, layers int) (time.Duration, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bookLocked(node).measures.usual(rows, layers)
}
