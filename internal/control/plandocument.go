package control

import (
	"fmt"

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
		f.check(want == DesiredPaused || want == DesiredRemoved, "node %q: desired %q", id, want)
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

// String names the document in logs.
func (d *PlanDocument) String() string {
	return fmt.Sprintf("plan %d (epoch %d, %.8s)", d.Generation, d.Epoch, d.Hash)
}
