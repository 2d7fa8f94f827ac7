package sim

import (
	"fmt"
	"math/rand/v2"

	"hecate/swarm"
)

// A Size says how large a made-up swarm is.
type Size struct {
	Nodes  int
	Models int // base models, alike; 0 means 1
	// Copies of each model; 0: as many as nine tenths of the memory hold.
	Copies int
	// Even makes all nodes alike; otherwise they are of five kinds.
	Even bool
}

// Kinds of machine that people own: score and GiB for models.
var kinds = []struct {
	name  string
	score float64
	gib   int64
}{
	{"gpu", 10, 4}, {"mini", 6, 4}, {"laptop", 5, 3}, {"mac", 8, 4}, {"server", 12, 6},
}

const (
	generatedLayers = 24
	layerBytes      = 310 << 20
)

// Generate makes up a swarm whose nodes can hold a model only together: 24
// layers of 256 MiB, nodes of 3 to 6 GiB. The same size and seed give the same
// swarm.
func Generate(size Size, seed uint64) (swarm.Topology, error) {
	if size.Models == 0 {
		size.Models = 1
	}
	if size.Nodes < 1 || size.Models < 0 || size.Copies < 0 {
		return swarm.Topology{}, fmt.Errorf("a swarm of %d nodes, %d models, %d copies: %w", size.Nodes, size.Models, size.Copies, swarm.ErrInvalid)
	}
	chance := rand.New(rand.NewPCG(seed, 0x67656e6572617465))
	var t swarm.Topology
	var room int64
	for i := range size.Nodes {
		k := kinds[chance.IntN(len(kinds))]
		if size.Even {
			k = kinds[0]
		}
		memory := k.gib << 30
		room += memory
		t.Nodes = append(t.Nodes, swarm.NodeProfile{ID: fmt.Sprintf("%s-%05d", k.name, i), MemoryBytes: memory,
			Score: k.score, LatencyMS: 5})
	}
	if size.Copies == 0 {
		whole := int64(generatedLayers*layerBytes) * int64(size.Models)
		size.Copies = int(max(1, room/10*9/whole))
	}
	for i := range size.Models {
		t.Models = append(t.Models, swarm.ModelSpec{ID: fmt.Sprintf("model-%03d", i), Layers: generatedLayers,
			LayerBytes: []int64{layerBytes}, Copies: size.Copies})
	}
	return t, nil
}

// Capacity is how many requests per second a plan's copies can finish with
// every batch full, on average lengths: what the busiest node of each copy
// allows, nodes in several copies divided among them.
func Capacity(plan *swarm.Plan, hardware Hardware, lengths Lengths) float64 {
	h, l := hardware.withDefaults(), lengths.withDefaults()
	s := Scenario{Plan: plan, Hardware: h}
	uses := map[string]int{}
	for _, p := range plan.Pipelines {
		for _, st := range p.Stages {
			uses[st.Node]++
		}
	}
	at := map[string]*machine{}
	machines := s.machines()
	for i := range machines {
		at[machines[i].id] = &machines[i]
	}
	crowd := h.slowdown(float64(h.Slots)) / float64(h.Slots)
	total := 0.0
	for _, p := range plan.Pipelines {
		slowest := 0.0
		for _, st := range p.Stages {
			m := at[st.Node]
			each := float64(st.Layers.Len()) * (m.token*float64(l.Prompt) + m.layer*float64(l.Output)) * crowd
			slowest = max(slowest, each*float64(uses[st.Node]))
		}
		total += 1e9 / slowest
	}
	return total
}
