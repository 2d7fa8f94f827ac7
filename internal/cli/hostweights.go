package cli

import (
	"context"
	"fmt"
	"net/http"

	"hecate/internal/control"
	"hecate/internal/control/plane"
	"hecate/internal/demomodel"
	"hecate/internal/weights"
)

// serveWeights gives the store's models to the nodes of the swarm.
func (h *host) serveWeights(g *plane.Gateway) http.Handler {
	h.weights = weights.NewServer(weights.ServerConfig{
		Library: h.store, Peer: g.Node, Rate: h.cfg.sendRate, Log: h.cfg.log,
		Holders: func(hash, piece string) []weights.Holder { return holdersOf(g.Membership(), hash, piece) },
	})
	return h.weights
}

// holdersOf lists the nodes that say that they have a piece and can be reached.
func holdersOf(m *control.Membership, hash, piece string) (out []weights.Holder) {
	if m == nil {
		return nil // nobody was heard yet
	}
	view := m.View()
	for i := range view.Members {
		member := &view.Members[i]
		addresses := plane.WeightsAddresses(member)
		if len(addresses) == 0 {
			continue
		}
		for _, s := range member.Health.Stored {
			if s.Hash == hash && s.Has(piece) {
				out = append(out, weights.Holder{Node: member.ID, Addresses: addresses})
			}
		}
	}
	return out
}

// restock takes models into the store that the catalogue has from a time before
// there was one.
func (h *host) restock(ctx context.Context, have []*control.ModelRecord) error {
	for _, old := range have {
		if len(old.Pieces) > 0 {
			continue
		}
		rec, err := h.describeAnew(ctx, old)
		if err != nil {
			return fmt.Errorf("take %s into the store of models: %w", old.ID, err)
		}
		rec.Created, rec.Demo = old.Created, old.Demo
		if err := control.PutModel(ctx, h.plane.Store(), rec); err != nil {
			return err
		}
	}
	return nil
}

func (h *host) describeAnew(ctx context.Context, old *control.ModelRecord) (*control.ModelRecord, error) {
	if old.ID == demomodel.Name && old.Demo {
		return demoRecord(ctx, h.cfg.dir)
	}
	return describeModel(ctx, h.cfg.dir, old.Source, old.ID, nil)
}
