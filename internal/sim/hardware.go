package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"hecate/swarm"
)

// Hardware says what a node's declared score means in time. The zero value is
// the default.
type Hardware struct {
	// LayerTime is one decode step of one session through one layer on a node
	// of score 1; a node of score s takes 1/s of it. 0 means 3 ms.
	LayerTime time.Duration
	// PromptSpeedup is how many prompt tokens are read in the time of one
	// decode step, at least 1; 0 means 8.
	PromptSpeedup float64
	// Slots is how many sessions a node computes in one batch; 0 means 8.
	Slots int
	// BatchCost is what each further session adds to the step of a batch, as a
	// share of the step of one; 0 means 0.15, negative nothing.
	BatchCost float64
	// RoundTrip is the mean time from gateway to node and back; each node draws
	// its own from half of it to one and a half. 0 means 0.6 ms, negative none.
	RoundTrip time.Duration
	// Jitter is by how much a piece of work may take longer or shorter than
	// computed, as a share of it, below 1; 0 means 0.1, negative nothing.
	Jitter float64
}

func (h Hardware) withDefaults() Hardware {
	if h.LayerTime == 0 {
		h.LayerTime = 3 * time.Millisecond
	}
	if h.PromptSpeedup == 0 {
		h.PromptSpeedup = 8
	}
	if h.Slots == 0 {
		h.Slots = 8
	}
	if h.BatchCost == 0 {
		h.BatchCost = 0.15
	}
	if h.RoundTrip == 0 {
		h.RoundTrip = 600 * time.Microsecond
	}
	if h.Jitter == 0 {
		h.Jitter = 0.1
	}
	h.BatchCost, h.RoundTrip, h.Jitter = max(0, h.BatchCost), max(0, h.RoundTrip), max(0, h.Jitter)
	return h
}

func (h Hardware) validate() error {
	switch {
	case h.LayerTime < 0:
		return fmt.Errorf("time per layer of %v is below zero", h.LayerTime)
	case !(h.PromptSpeedup >= 1):
		return fmt.Errorf("prompts read %v times as fast as steps, want at least 1", h.PromptSpeedup)
	case h.Slots < 0:
		return fmt.Errorf("%d slots", h.Slots)
	case !(h.BatchCost <= 1):
		return fmt.Errorf("batch cost %v is above 1: batches would be slower than turns", h.BatchCost)
	case !(h.Jitter < 1):
		return fmt.Errorf("jitter %v, want below 1", h.Jitter)
	}
	return nil
}

// slowdown is how much longer a step takes with that many sessions present
// (not always a whole number, at least 1) than alone.
func (h *Hardware) slowdown(present float64) float64 {
	slots := float64(h.Slots)
	if present <= slots {
		return 1 + h.BatchCost*(present-1)
	}
	return (1 + h.BatchCost*(slots-1)) * present / slots
}

// A machine is one node as it really is.
type machine struct {
	id     string
	score  float64
	layer  float64 // ns, a step of one session through one layer
	token  float64 // ns, a prompt token of one session through one layer
	link   float64 // ns, gateway to node and back
	layers int     // of its largest planned stage: what an idle node calls a step
	used   bool    // the plan gives it a stage

	dead        bool
	incarnation uint32
	sessions    int     // in flight and computing
	present     float64 // of them, how many are here at one moment
	step        float64 // ms, the last step
	latency     swarm.Reading

	ledger
}

// machines are the plan's nodes in its order.
func (s *Scenario) machines() []machine {
	chance := rand.New(rand.NewPCG(s.Seed, 0x6d616368696e6573))
	out := make([]machine, len(s.Plan.Nodes))
	at := map[string]*machine{}
	for i := range out {
		p := &s.Plan.Nodes[i].Profile
		layer := float64(s.Hardware.LayerTime) / max(p.Score, 0.01)
		out[i] = machine{id: p.ID, score: p.Score, layer: layer, token: layer / s.Hardware.PromptSpeedup,
			link: float64(s.Hardware.RoundTrip) * (0.5 + chance.Float64())}
		at[p.ID] = &out[i]
	}
	for _, p := range s.Plan.Pipelines {
		for _, st := range p.Stages {
			m := at[st.Node]
			m.used, m.layers = true, max(m.layers, st.Layers.Len())
		}
	}
	for i := range out {
		out[i].step = out[i].idleStep()
	}
	return out
}

// idleStep is what a step takes with nobody else there, in milliseconds.
func (m *machine) idleStep() float64 { return m.layer * float64(m.layers) / 1e6 }

// enter and leave count a session in and out; share is how much of the time it
// is here.
func (m *machine) enter(share float64, now int64) {
	m.settle(m.present, now)
	m.sessions++
	m.present += share
	m.peak = max(m.peak, m.sessions)
}

func (m *machine) leave(share float64, now int64) {
	m.settle(m.present, now)
	m.sessions--
	m.present -= share
	if m.sessions == 0 {
		m.present = 0 // no dust of rounding stays behind
	}
	if m.sessions < 0 {
		panic("BUG: a session left node " + m.id + " twice")
	}
}
