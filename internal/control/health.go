package control

import (
	"fmt"
	"math"

	"hecate/swarm"
)

// HoldState says how far a held fragment is.
type HoldState string

const (
	HoldServing HoldState = "serving" // loaded, sessions may use it
	HoldWarm    HoldState = "warm"    // loaded, not first choice: a spare, or ahead of a cut-over
)

// A HeldFragment is a range of layers that a node really has in memory.
type HeldFragment struct {
	Model  string           `json:"model"`
	Layers swarm.LayerRange `json:"layers"`
	State  HoldState        `json:"state"`
	Hash   string           `json:"hash,omitempty"` // of the model's content
	Tokens int64            `json:"tokens"`         // computed through it since the start of the process
	// KV cells (tokens) of its layers, in all, and the fewest that are free and
	// not reserved. Each model has its own.
	Cells     int `json:"cells,omitempty"`
	FreeCells int `json:"free_cells,omitempty"`
	// Taken is how many cells each gateway's answers have, on the layer of which the
	// most are taken; nil: the node does not tell gateways apart.
	Taken map[string]int `json:"taken"`
}

// LoadPhase is what a node is doing to get a fragment.
type LoadPhase string

const (
	LoadFetching LoadPhase = "fetching" // bytes arrive
	LoadLoading  LoadPhase = "loading"  // bytes become tensors
	LoadFailed   LoadPhase = "failed"   // Error says why; it tries again
)

// Loading is a fragment on its way into memory.
type Loading struct {
	Model  string           `json:"model"`
	Layers swarm.LayerRange `json:"layers"`
	Phase  LoadPhase        `json:"phase"`
	Done   int64            `json:"done"`  // bytes
	Total  int64            `json:"total"` // bytes; 0: not known yet
	Error  string           `json:"error,omitempty"`
}

// Health is what a node says of itself each second. Reporter fills Version,
// Node, Incarnation, Instance, Sequence, PID and Leaving; the node's room the
// rest.
type Health struct {
	Version     int    `json:"version"`
	Node        string `json:"node"`
	Incarnation uint64 `json:"incarnation"`
	Instance    string `json:"instance"`
	// Sequence grows with every report of one incarnation; a report that is
	// not newer than the last one seen is no evidence of life.
	Sequence uint64 `json:"sequence"`
	PID      int    `json:"pid"`
	Leaving  bool   `json:"leaving,omitempty"` // goodbye: the last report

	// State is what routing prices: latency, load, score, fragments.
	State swarm.NodeState `json:"state"`
	// PlanGeneration is the newest plan that the node works towards.
	PlanGeneration uint64         `json:"plan_generation"`
	Paused         bool           `json:"paused,omitempty"` // takes no new session
	Held           []HeldFragment `json:"held,omitempty"`
	Loading        []Loading      `json:"loading,omitempty"`
	// Stored is on disk and can be fetched by other nodes, at WeightsPort of
	// the node's addresses; 0: not from here.
	Stored      []Stored `json:"stored,omitempty"`
	WeightsPort int      `json:"weights_port,omitempty"`
	// Received is from where the weights of wanted models came.
	Received []Received `json:"received,omitempty"`

	MemoryUsed     int64   `json:"memory_used"`     // bytes of weights, KV and buffers
	MemoryBudget   int64   `json:"memory_budget"`   // bytes
	Cells          int     `json:"cells"`           // KV cells (tokens) in all
	FreeCells      int     `json:"free_cells"`      // of them free and not reserved
	TokensComputed int64   `json:"tokens_computed"` // for answers; what shadows compute ahead is left out
	Sessions       int     `json:"sessions"`        // open now
	ServedRequests int64   `json:"served_requests"`
	FailedRequests int64   `json:"failed_requests"`
	LastLatencyMS  float64 `json:"last_latency_ms"` // the newest sample, not averaged; diagnosis only
	DataLoad       float64 `json:"data_load"`       // the data plane's own load, 1 is full; part of State's load
}

func (h *Health) kind() string  { return "health" }
func (h *Health) version() *int { return &h.Version }

// maxFragments bounds what a node may claim: every layer of eight deep models.
const maxFragments = 8 * maxLayers

// maxTaken bounds the gateways that a node tells of.
const maxTaken = 4096

// maxStored bounds how many models' pieces a node tells of.
const maxStored = 256

// maxReceived bounds the senders of weights that a node tells of.
const maxReceived = 1024

// Validate lists everything that is wrong with the report.
func (h *Health) Validate() error {
	var f faults
	f.add(ValidateNodeName(h.Node))
	f.add(h.State.Validate())
	f.check(h.State.ID == h.Node, "health of %q holds the state of %q", h.Node, h.State.ID)
	f.check(h.Incarnation > 0, "incarnation 0")
	f.check(h.Sequence > 0, "sequence 0")
	f.check(len(h.Held)+len(h.Loading) <= maxFragments, "%d fragments, at most %d", len(h.Held)+len(h.Loading), maxFragments)
	for _, held := range h.Held {
		f.add(validateFragment(held.Model, held.Layers))
	}
	for _, l := range h.Loading {
		f.add(validateFragment(l.Model, l.Layers))
	}
	f.check(len(h.Stored) <= maxStored, "%d models on disk, at most %d are told", len(h.Stored), maxStored)
	for _, st := range h.Stored {
		f.add(st.validate())
	}
	f.check(len(h.Received) <= maxReceived, "%d senders of weights, at most %d are told", len(h.Received), maxReceived)
	for _, r := range h.Received {
		f.add(r.validate())
	}
	f.check(h.WeightsPort >= 0 && h.WeightsPort < 1<<16, "weights port %d", h.WeightsPort)
	f.check(h.MemoryUsed >= 0 && h.MemoryBudget >= 0 && h.TokensComputed >= 0, "a counter below 0")
	f.check(h.FreeCells >= 0 && h.FreeCells <= h.Cells, "%d of %d cells free", h.FreeCells, h.Cells)
	for _, x := range h.Held {
		f.check(x.FreeCells >= 0 && x.FreeCells <= x.Cells, "%s: %d of %d cells free", x.Model, x.FreeCells, x.Cells)
		f.check(len(x.Taken) <= maxTaken, "%s: cells of %d gateways, at most %d", x.Model, len(x.Taken), maxTaken)
		for gateway, n := range x.Taken {
			f.add(ValidateNodeName(gateway))
			f.check(n > 0, "%s: %d cells are taken by %s", x.Model, n, gateway)
		}
	}
	for _, v := range []float64{h.LastLatencyMS, h.DataLoad} {
		f.check(v >= 0 && !math.IsInf(v, 0), "%v is no latency or load", v)
	}
	return f.join()
}

// existence is the report without anything that could be wrong with it: a
// fault in a number must not look like a death.
func (h *Health) existence() *Health {
	return &Health{
		Node: h.Node, Incarnation: h.Incarnation, Instance: h.Instance, Sequence: h.Sequence, PID: h.PID, Leaving: h.Leaving,
		State: swarm.NodeState{ID: h.Node},
	}
}

// essence is existence, and what is held.
func (h *Health) essence() *Health {
	e := h.existence()
	e.Held, e.Loading, e.Paused, e.PlanGeneration = h.Held, h.Loading, h.Paused, h.PlanGeneration
	e.State.Served, e.State.Fragments = h.State.Served, h.State.Fragments
	return e
}

func validateFragment(model string, r swarm.LayerRange) error {
	if err := ValidateModelName(model); err != nil {
		return err
	}
	if r.First < 0 || r.Last < r.First || r.Last >= maxLayers {
		return fmt.Errorf("model %q: layers %d to %d are no range", model, r.First, r.Last)
	}
	return nil
}
