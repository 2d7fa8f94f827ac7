package swarm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sort"
)

// A Plan says who holds what and which copies of which model exist: the slow,
// deterministic half of the swarm. It is a value; nothing in this package
// changes a plan after it was made. Telemetry is not in it (see State).
type Plan struct {
	Generation int64  `json:"generation"` // rises by one whenever the content changes; the first plan has 1
	Epoch      int64  `json:"epoch"`      // the planner's lease revision; set by the control plane, not by the planner
	Hash       string `json:"hash"`       // SHA-256 over the content: neither Generation, Epoch nor MovedBytes

	Models    []ModelSpec `json:"models"` // all that were asked for, placed or not, in id order
	Nodes     []NodePlan  `json:"nodes"`  // every planned node in id order, idle ones too
	Pipelines []Pipeline  `json:"pipelines"`

	// Redundancy names, per model and layer, every node that holds the layer,
	// warm spares included, in id order.
	Redundancy map[string]Redundancy `json:"redundancy"`

	SharedNodes []SharedNode   `json:"shared_nodes,omitempty"`   // nodes that more than one copy of a model needs
	Hurting     []HurtingDeath `json:"hurting_deaths,omitempty"` // single deaths that leave a layer without a holder
	Unplaced    []Unplaced     `json:"unplaced,omitempty"`       // copies that found no room
	Idle        []IdleNode     `json:"idle,omitempty"`           // nodes in no pipeline, with the reason
	Notes       []string       `json:"notes,omitempty"`          // why it is as it is, for people

	MovedBytes int64 `json:"moved_bytes"` // weight bytes that nodes must load which the previous plan did not give them
}

// Redundancy maps a layer to the nodes that hold it, in id order.
type Redundancy map[int][]string

// A NodePlan is one node's part of a plan.
type NodePlan struct {
	Profile       NodeProfile      `json:"profile"`
	UsedBytes     int64            `json:"used_bytes"`     // weights and KV of everything in Fragments
	HeadroomBytes int64            `json:"headroom_bytes"` // kept free; UsedBytes + HeadroomBytes <= Profile.MemoryBytes
	Share         float64          `json:"share"`          // UsedBytes / Profile.MemoryBytes, 0..1
	Fragments     []PlacedFragment `json:"fragments,omitempty"`
}

// A PlacedFragment is a range of layers that a node must hold. Fragments of
// one node and model never overlap in a plan.
type PlacedFragment struct {
	Model  string     `json:"model"`
	Layers LayerRange `json:"layers"`
	Spare  bool       `json:"spare,omitempty"` // warm, used by no pipeline until something dies
}

// A SharedNode is a node on which more than one copy of a model depends: its
// death breaks them all (a splice must help).
type SharedNode struct {
	Node      string `json:"node"`
	Model     string `json:"model"`
	Pipelines []int  `json:"pipelines"`
}

// A HurtingDeath is one node whose death alone leaves layers of a model
// without any holder.
type HurtingDeath struct {
	Node   string       `json:"node"`
	Model  string       `json:"model"`
	Layers []LayerRange `json:"layers"`
}

// Unplaced says how many copies of a model found no room and why.
type Unplaced struct {
	Model          string `json:"model"`
	Copies         int    `json:"copies"`          // copies missing
	ShortfallBytes int64  `json:"shortfall_bytes"` // bytes of usable memory that are missing; 0 when memory is not the reason
	Reason         string `json:"reason"`
}

// An IdleNode serves in no pipeline.
type IdleNode struct {
	Node   string `json:"node"`
	Reason string `json:"reason"`
}

// Model finds a model of the plan by id.
func (p *Plan) Model(id string) (ModelSpec, bool) {
	i := sort.Search(len(p.Models), func(i int) bool { return p.Models[i].ID >= id })
	if i < len(p.Models) && p.Models[i].ID == id {
		return p.Models[i], true
	}
	return ModelSpec{}, false
}

// Node finds a node of the plan by id.
func (p *Plan) Node(id string) (NodePlan, bool) {
	i := sort.Search(len(p.Nodes), func(i int) bool { return p.Nodes[i].Profile.ID >= id })
	if i < len(p.Nodes) && p.Nodes[i].Profile.ID == id {
		return p.Nodes[i], true
	}
	return NodePlan{}, false
}

// PipelinesOf returns the copies of one model in pipeline order.
func (p *Plan) PipelinesOf(model string) []Pipeline {
	var out []Pipeline
	for _, pl := range p.Pipelines {
		if pl.Model == model {
			out = append(out, pl)
		}
	}
	return out
}

// contentHash is the hash of what the plan says, whoever planned it and
// whatever came before.
func (p *Plan) contentHash() string {
	c := *p
	c.Generation, c.Epoch, c.Hash, c.MovedBytes = 0, 0, "", 0
	b, err := json.Marshal(&c)
	if err != nil {
		// Only a profile with a score or latency that is not a number can get
		// here, and those are refused before planning.
		panic("BUG: a plan that cannot be written as JSON: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
