package event

import (
	"fmt"
	"time"
)

// A Fact is one thing that happened. String is a line for people; the exported
// fields are the details, as they stand in JSON.
type Fact interface {
	fmt.Stringer
	Kind() Kind
	About() Subject
}

// Subject is what a fact is about; what does not apply is empty.
type Subject struct {
	Node  string `json:"node,omitempty"`
	Model string `json:"model,omitempty"`
	Job   string `json:"job,omitempty"` // the answer's id, as its client knows it
}

// Membership: a node came, went, or fell silent.
type Membership struct {
	What  Kind   `json:"-"`
	Node  string `json:"-"`
	Words string `json:"-"`
}

// Steered: an operator wants something else of a node.
type Steered struct {
	Node string `json:"-"`
	Want string `json:"want"` // active, paused, drained, ...
}

// Layers: what a node holds changed.
type Layers struct {
	Node   string `json:"-"`
	Model  string `json:"-"`
	First  int    `json:"first"`
	Last   int    `json:"last"`
	Loaded bool   `json:"loaded"` // false: dropped
}

// Transfer: weights on their way to a node. What is TransferStarted, Finished or Failed.
type Transfer struct {
	What    Kind   `json:"-"`
	Node    string `json:"-"`
	Model   string `json:"-"`
	First   int    `json:"first"`
	Last    int    `json:"last"`
	Bytes   int64  `json:"bytes,omitempty"` // in all; 0: not known
	Because string `json:"because,omitempty"`
}

// Plan: this gateway follows a new plan.
type Plan struct {
	Generation uint64 `json:"generation"`
	Copies     int    `json:"copies"`      // of all models
	MovedBytes int64  `json:"moved_bytes"` // that nodes have to load for it
}

// Readiness of a model: can it be asked?
type Readiness struct {
	Model   string `json:"-"`
	Ready   bool   `json:"ready"`
	Missing string `json:"missing,omitempty"`
}

// Copy of a model: is it whole?
type Copy struct {
	Model   string `json:"-"`
	ID      int    `json:"copy"`
	Live    bool   `json:"live"`
	Missing string `json:"missing,omitempty"`
}

// Rescue: an answer survived a failure.
type Rescue struct {
	Job      string  `json:"-"`
	Model    string  `json:"-"`
	Node     string  `json:"-"` // that failed
	How      string  `json:"how"`
	Position int     `json:"position"`           // tokens of prompt and answer so far
	GapMS    float64 `json:"gap_ms"`             // the pause that its reader saw
	Replayed int     `json:"replayed,omitempty"` // positions that had to be computed again
	Because  string  `json:"because"`            // what was noticed
}

// Loss: an answer could not go on.
type Loss struct {
	Job      string `json:"-"`
	Model    string `json:"-"`
	Node     string `json:"-"` // that failed last
	Position int    `json:"position"`
	Because  string `json:"because"`
}

// Wait: an answer gave its room back in the middle and waits for more.
type Wait struct {
	Job      string `json:"-"`
	Model    string `json:"-"`
	Position int    `json:"position"` // tokens of prompt and answer so far
	Because  string `json:"because"`
}

// Degradation: a fallback model answers for one that cannot be served.
type Degradation struct {
	Job     string `json:"-"`
	Model   string `json:"-"`  // that was asked for
	By      string `json:"by"` // that answers
	Because string `json:"because"`
}

// Refusal: requests were not admitted. Those of one second are told of at once.
type Refusal struct {
	Model  string `json:"-"`
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// Pool: something happened to the connections.
type Pool struct {
	What       Kind          `json:"-"` // PoolRoutine, PoolChange or PoolTrouble
	Node       string        `json:"-"`
	Event      string        `json:"event"` // the pool's own name for it
	Endpoint   string        `json:"endpoint,omitempty"`
	Generation uint64        `json:"generation,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	Took       time.Duration `json:"took_ns,omitempty"`
	Words      string        `json:"-"`
}

func (f Membership) Kind() Kind { return f.What }
func (f Transfer) Kind() Kind   { return f.What }
func (f Pool) Kind() Kind       { return f.What }
func (Steered) Kind() Kind      { return NodeSteered }
func (Plan) Kind() Kind         { return PlanTaken }
func (Rescue) Kind() Kind       { return Rescued }
func (Loss) Kind() Kind         { return Lost }
func (Wait) Kind() Kind         { return GaveWay }
func (Degradation) Kind() Kind  { return Degraded }
func (Refusal) Kind() Kind      { return Refused }
func (f Layers) Kind() Kind     { return either(f.Loaded, LayersLoaded, LayersDropped) }
func (f Readiness) Kind() Kind  { return either(f.Ready, ModelReady, ModelUnready) }
func (f Copy) Kind() Kind       { return either(f.Live, CopyLive, CopyBroken) }

func either[T any](which bool, yes, no T) T {
	if which {
		return yes
	}
	return no
}

func (f Membership) About() Subject  { return Subject{Node: f.Node} }
func (f Steered) About() Subject     { return Subject{Node: f.Node} }
func (f Layers) About() Subject      { return Subject{Node: f.Node, Model: f.Model} }
func (f Transfer) About() Subject    { return Subject{Node: f.Node, Model: f.Model} }
func (f Plan) About() Subject        { return Subject{} }
func (f Readiness) About() Subject   { return Subject{Model: f.Model} }
func (f Copy) About() Subject        { return Subject{Model: f.Model} }
func (f Rescue) About() Subject      { return Subject{Node: f.Node, Model: f.Model, Job: f.Job} }
func (f Loss) About() Subject        { return Subject{Node: f.Node, Model: f.Model, Job: f.Job} }
func (f Wait) About() Subject        { return Subject{Model: f.Model, Job: f.Job} }
func (f Degradation) About() Subject { return Subject{Model: f.Model, Job: f.Job} }
func (f Refusal) About() Subject     { return Subject{Model: f.Model} }
func (f Pool) About() Subject        { return Subject{Node: f.Node} }

func (f Membership) String() string { return f.Words }
func (f Pool) String() string       { return f.Words }

func (f Steered) String() string {
	return fmt.Sprintf("an operator wants node %s %s", f.Node, f.Want)
}

func (f Layers) String() string {
	verb := either(f.Loaded, "holds", "gave up")
	return fmt.Sprintf("node %s %s layers %d-%d of %s", f.Node, verb, f.First, f.Last, f.Model)
}

func (f Transfer) String() string {
	what := fmt.Sprintf("layers %d-%d of %s", f.First, f.Last, f.Model)
	switch f.What {
	case TransferStarted:
		return fmt.Sprintf("%s are on their way to node %s", what, f.Node)
	case TransferFailed:
		return fmt.Sprintf("%s did not reach node %s: %s", what, f.Node, f.Because)
	}
	return fmt.Sprintf("%s reached node %s", what, f.Node)
}

func (f Plan) String() string {
	return fmt.Sprintf("plan %d is followed: copies %d, bytes to load %d", f.Generation, f.Copies, f.MovedBytes)
}

func (f Readiness) String() string {
	if f.Ready {
		return fmt.Sprintf("model %s can be asked", f.Model)
	}
	return fmt.Sprintf("model %s cannot be asked: %s", f.Model, f.Missing)
}

func (f Copy) String() string {
	if f.Live {
		return fmt.Sprintf("copy %d of %s is whole", f.ID, f.Model)
	}
	return fmt.Sprintf("copy %d of %s waits for %s", f.ID, f.Model, f.Missing)
}

func (f Rescue) String() string {
	return fmt.Sprintf("an answer survived the failure of node %s by %s, after a pause of %.0f ms", f.Node, f.How, f.GapMS)
}

func (f Loss) String() string {
	return fmt.Sprintf("an answer was lost after %d tokens: %s", f.Position, f.Because)
}

func (f Wait) String() string {
	return fmt.Sprintf("an answer gave way after %d tokens and waits for room: %s", f.Position, f.Because)
}

func (f Degradation) String() string {
	return fmt.Sprintf("%s answers for %s: %s", f.By, f.Model, f.Because)
}

func (f Refusal) String() string {
	if f.Count == 1 {
		return fmt.Sprintf("a request for %s was refused: %s", f.Model, f.Reason)
	}
	return fmt.Sprintf("%d requests for %s were refused: %s", f.Count, f.Model, f.Reason)
}
