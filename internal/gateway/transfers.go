package gateway

import (
	"cmp"
	"fmt"
	"slices"

	"hecate/internal/control"
	"hecate/internal/report"
)

// loadingOf lists what is on its way into a node's memory.
func loadingOf(h *control.Health) (out []report.Transfer) {
	for _, l := range h.Loading {
		out = append(out, report.Transfer{Model: l.Model, Layers: l.Layers, Phase: string(l.Phase), Done: l.Done, Total: l.Total, Error: l.Error})
	}
	return out
}

// receivedOf says from where a node's weights came.
func receivedOf(h *control.Health, doc *control.PlanDocument) (out []report.Received) {
	if doc == nil {
		return nil
	}
	for model, hash := range doc.Models {
		for _, r := range h.Received {
			for _, run := range r.Runs {
				if r.Hash == hash {
					out = append(out, report.Received{Model: model, Layers: run.Layers, From: r.From, Bytes: run.Bytes})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b report.Received) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), a.Layers.First-b.Layers.First, cmp.Compare(a.From, b.From))
	})
	return out
}

// failuresOf says what a living node cannot load, and why.
func failuresOf(n report.Node) (out []string) {
	for _, l := range n.Loading {
		if n.Alive && l.Error != "" {
			out = append(out, fmt.Sprintf("node %s could not load layers %s of %s: %s", n.ID, l.Layers, l.Model, l.Error))
		}
	}
	return out
}

// sent is how many bytes of a model's weights left this gateway.
func (g *Gateway) sent(hash string) int64 {
	if g.cfg.Sent == nil {
		return 0
	}
	return g.cfg.Sent()[hash]
}

// noRoomFor says that a model is an expert for which the others leave no room.
// That is as it should be: the swarm is no less healthy for it.
func noRoomFor(doc *control.PlanDocument, rec *control.ModelRecord) bool {
	return rec.Spec.Expert && doc != nil && len(doc.Plan.PipelinesOf(rec.ID)) == 0
}
