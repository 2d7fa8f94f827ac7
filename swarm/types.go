package swarm

// A LayerRange is an inclusive run of transformer layers, First..Last,
// counted from zero. In JSON it is the pair [first, last].
type LayerRange struct{ First, Last int }

// A Stage is a maximal run of layers that one node executes in one go.
type Stage struct {
	Node   string     `json:"node"`
	Layers LayerRange `json:"layers"`
}

// A Fragment is an inclusive range of layers of one model that a node holds.
// Fragments of one node are never merged; overlaps are legal.
type Fragment struct {
	Model  string     `json:"model"`
	Layers LayerRange `json:"layers"`
}

// A Pipeline is one complete planned copy of a model: stages in layer order,
// covering every layer exactly once.
type Pipeline struct {
	ID     int     `json:"pipeline_id"`
	Model  string  `json:"model"`
	Stages []Stage `json:"stages"`
}

// A Replacement says which node took over which lost layers in a splice.
type Replacement struct {
	By     string     `json:"by"`
	Layers LayerRange `json:"layers"`
}

// A Route is what a request will really use.
type Route struct {
	Model      string        `json:"model"`
	PipelineID int           `json:"pipeline_id"` // the copy it follows; -1 when it follows none (assembled, spliced, degraded to survivors)
	Stages     []Stage       `json:"stages"`
	Cost       Cost          `json:"cost"`
	Degraded   bool          `json:"degraded"`            // a fallback model or survivors stand in
	Assembled  bool          `json:"assembled,omitempty"` // a chain put together outside the plan's copies
	Replaced   []Replacement `json:"replaced,omitempty"`
	Reason     string        `json:"reason,omitempty"` // why it is as it is, when that needs saying
}

// Cost is a price in nanoseconds-equivalent of latency. It adds saturating at
// Infinite and prints, and marshals, as milliseconds.
type Cost int64

// A NodeProfile is what a node declares when it joins; the planner's input.
type NodeProfile struct {
	ID          string   `json:"id"`
	MemoryBytes int64    `json:"memory_bytes"` // budget for weights, KV and headroom
	Score       float64  `json:"score"`        // relative compute capacity, > 0
	LatencyMS   float64  `json:"latency_ms"`   // declared latency, milliseconds
	Endpoints   []string `json:"endpoints,omitempty"`
}

// A ModelSpec is what the planner must know of a model: sizes in bytes.
type ModelSpec struct {
	ID             string  `json:"id"`
	Layers         int     `json:"layers"`
	LayerBytes     []int64 `json:"layer_bytes"`      // one entry per layer, or one entry that holds for all
	EmbeddingBytes int64   `json:"embedding_bytes"`  // belongs to layer 0
	HeadBytes      int64   `json:"head_bytes"`       // output norm and head; belongs to the last layer
	KVBytes        int64   `json:"kv_bytes"`         // per token and layer
	ContextTokens  int     `json:"context_tokens"`   // tokens of KV to reserve on every holder
	Copies         int     `json:"copies,omitempty"` // 0: the planner's default
	Priority       int     `json:"priority,omitempty"`
	Expert         bool    `json:"expert,omitempty"`       // placed only in what the base models leave
	FallbackFor    string  `json:"fallback_for,omitempty"` // may stand in, labelled, for that model
}
