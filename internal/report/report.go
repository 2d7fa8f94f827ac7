// Package report is what a gateway says of its swarm: the documents under
// /v1/swarm, read by the command line, the page and other programs.
package report

import (
	"hecate/swarm"
)

// Status is the swarm as it is now; GET /v1/swarm.
type Status struct {
	State      string   `json:"state"`         // healthy, degraded, failed
	Why        []string `json:"why,omitempty"` // what is missing for healthy
	Gateway    string   `json:"gateway"`
	URL        string   `json:"url,omitempty"`
	Version    string   `json:"version"`
	Generation uint64   `json:"generation"` // of the plan
	Chaos      bool     `json:"chaos"`      // failures may be rehearsed: --allow-chaos
	Nodes      []Node   `json:"nodes"`
	Models     []Model  `json:"models"`
	Answers    Answers  `json:"answers"`
}

// Node is one worker.
type Node struct {
	ID             string            `json:"id"`
	PID            int               `json:"pid,omitempty"` // when it runs on the gateway's machine
	Alive          bool              `json:"alive"`
	Desired        string            `json:"desired"`
	Reverse        bool              `json:"reverse,omitempty"` // it cannot be reached, and connects to the gateway
	LatencyMS      *float64          `json:"latency_ms"`        // moving average per decode step; null: unmeasured
	Load           *float64          `json:"load"`              // 1 is fully loaded
	Score          *float64          `json:"score"`
	RoundTripMS    *float64          `json:"round_trip_ms"`
	MemoryUsed     int64             `json:"memory_used"`   // bytes
	MemoryBudget   int64             `json:"memory_budget"` // bytes
	TokensComputed int64             `json:"tokens_computed"`
	Sessions       int               `json:"sessions"`
	Cells          int               `json:"cells"`
	FreeCells      int               `json:"free_cells"`
	Fragments      []swarm.Fragment  `json:"fragments"`         // what it really holds
	Loading        []Transfer        `json:"loading,omitempty"` // what is on its way there
	Received       []Received        `json:"received,omitempty"`
	Exactness      string            `json:"exactness,omitempty"`
	IfItDies       map[string]string `json:"if_it_dies,omitempty"` // per model: unaffected, copy, splice, fallback, down
	Recovery       map[string]string `json:"recovery,omitempty"`   // per model, how it recovers from that: none, instant, warm load, cold fetch, never
}

// Model is one model and its planned copies.
type Model struct {
	ID            string     `json:"id"`
	Ready         bool       `json:"ready"`
	Demo          bool       `json:"demo,omitempty"`
	FallbackFor   string     `json:"fallback_for,omitempty"` // stands in, labelled, for that model
	Missing       string     `json:"missing,omitempty"`      // what readiness waits for
	Layers        int        `json:"layers"`
	ContextLength int        `json:"context_length"` // tokens, prompt and answer together
	Bytes         int64      `json:"bytes"`
	Created       int64      `json:"created"` // seconds since 1970
	Pipelines     []Pipeline `json:"pipelines"`
	Expert        bool       `json:"expert,omitempty"`     // runs in what the others leave
	SentBytes     int64      `json:"sent_bytes,omitempty"` // of its weights, from this gateway to nodes, since the gateway's start
}

// Transfer is a range of layers on its way into a node's memory.
type Transfer struct {
	Model  string           `json:"model"`
	Layers swarm.LayerRange `json:"layers"`
	Phase  string           `json:"phase"`           // fetching, loading, failed
	Done   int64            `json:"done"`            // bytes
	Total  int64            `json:"total"`           // bytes; 0: not known yet
	Error  string           `json:"error,omitempty"` // why it failed; it is tried again
}

// Received is what a node was sent of a model's weights since its process started.
type Received struct {
	Model  string           `json:"model"`
	Layers swarm.LayerRange `json:"layers"`
	From   string           `json:"from,omitempty"` // a node; "": a gateway
	Bytes  int64            `json:"bytes"`
}

// Pipeline is one copy.
type Pipeline struct {
	ID     int           `json:"pipeline_id"`
	Live   bool          `json:"live"`
	Stages []swarm.Stage `json:"stages"`
}

// Answers counts since the gateway's start.
type Answers struct {
	Running  int              `json:"running"`
	Queued   int              `json:"queued"`
	Midway   int              `json:"midway"`   // of those queued, answers that had begun and gave way
	GaveWay  int64            `json:"gave_way"` // times that an answer gave its room back in the middle
	Finished int64            `json:"finished"`
	Left     int64            `json:"left"` // by their clients
	Lost     int64            `json:"lost"`
	Degraded int64            `json:"degraded"` // requests that were put to a fallback model
	Rescues  map[string]int64 `json:"rescues"`  // by kind
	// Refused counts by reason: queue_full, wait_too_long, no_room, not_ready, too_large.
	Refused   map[string]int64 `json:"refused"`
	QueueWait Histogram        `json:"queue_wait"` // of all that were admitted
}

// Histogram counts durations by upper bounds.
type Histogram struct {
	Bounds []float64 `json:"bounds"` // seconds, rising
	Counts []int64   `json:"counts"` // one more than bounds: the rest; not cumulative
	Sum    float64   `json:"sum"`    // seconds
}

// Plan is the current plan; GET /v1/swarm/plan.
type Plan struct {
	Generation uint64      `json:"generation"`
	Epoch      uint64      `json:"epoch"`
	Plan       *swarm.Plan `json:"plan"`
}
