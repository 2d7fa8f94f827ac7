package control

import (
	"fmt"
	"maps"

	"hecate/swarm"
)

// A PlanDocument is the current plan as everybody reads it. It is written by
// the holder of the lease only, by compare-and-set.
type PlanDocument struct {
	Version int `json:"version"`
	// Generation grows with every document, also when only Desired or Models
	// changed and the plan itself did not.
	Generation uint64 `json:"generation"`
	// Epoch is the revision of the lease under which it was written.
	Epoch uint64 `json:"epoch"`
	// Hash is the plan's content hash: equal hashes, equal plans.
	Hash string `json:"hash"`
	// Desired holds the nodes that are not simply active. A node reads here
	// that it is paused or removed: it may not read the nodes bucket.
	Desired map[string]Desired `json:"desired,omitempty"`
	// Models holds the content hash of every model that the plan speaks of.
	Models map[string]string `json:"models,omitempty"`
	Plan   *swarm.Plan       `json:"plan"`
	// Stage is what must not happen yet on the way to the plan.
	Stage Stage `json:"stage,omitzero"`
}

func (d *PlanDocument) kind() string  { return "plan" }
func (d *PlanDocument) version() *int { return &d.Version }

// Validate checks the document's frame; the plan is checked by Plan.Validate
// where profiles and specs are known.
func (d *PlanDocument) Validate() error {
	var f faults
	f.check(d.Generation > 0, "generation 0")
	f.check(d.Epoch > 0, "epoch 0")
	f.check(d.Plan != nil, "no plan in it")
	for id, want := range d.Desired {
		f.add(ValidateNodeName(id))
		f.check(want.known() && want != DesiredActive, "node %q: desired %q", id, want)
	}
	return f.join()
}

// Newer reports whether d replaces old in the eyes of a reader: never from a
// deposed leader (a lower epoch), and within an epoch by generation.
func (d *PlanDocument) Newer(old *PlanDocument) bool {
	if old == nil {
		return true
	}
	if d.Epoch != old.Epoch {
		return d.Epoch > old.Epoch
	}
	return d.Generation > old.Generation
}

// DesiredOf is what is wanted of a node: active unless said otherwise.
func (d *PlanDocument) DesiredOf(node string) Desired {
	if want, ok := d.Desired[node]; ok {
		return want
	}
	return DesiredActive
}

// Wanted is what a node should hold now: what the plan gives it, except for
// what has to wait, and what it has to keep for a while. A node that is drained
// or removed is given nothing, but keeps as well. Ranges of one model do not overlap.
func (d *PlanDocument) Wanted(node string) []swarm.Fragment {
	set := map[layer]bool{}
	mark := func(model string, r swarm.LayerRange, wanted bool) {
		for l := r.First; l <= r.Last; l++ {
			set[layer{model, l}] = wanted
		}
	}
	if mine, ok := d.Plan.Node(node); ok && d.DesiredOf(node).planned() {
		for _, f := range mine.Fragments {
			mark(f.Model, f.Layers, true)
		}
	}
	for _, f := range d.Stage.Wait[node] {
		mark(f.Model, f.Layers, false)
	}
	for _, f := range d.Stage.Keep[node] {
		mark(f.Model, f.Layers, true)
	}
	maps.DeleteFunc(set, func(_ layer, wanted bool) bool { return !wanted })
	return fragments(set)
}

// String names the document in logs.
func (d *PlanDocument) String() string {
	return fmt.Sprintf("plan %d (epoch %d, %.8s)", d.Generation, d.Epoch, d.Hash)
}
