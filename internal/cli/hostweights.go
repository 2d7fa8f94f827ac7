package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/identity"
	"hecate/internal/control/plane"
	"hecate/internal/demomodel"
	"hecate/internal/weights"
)

// serveWeights gives the store's models to the nodes of the swarm.
func (h *host) serveWeights(g *plane.Gateway) http.Handler {
	h.weights = weights.NewServer(weights.ServerConfig{
		Library: h.store, Peer: g.Peer, Rate: h.cfg.sendRate, Busy: h.answering, Log: h.cfg.log,
		Holders: func(hash, piece string) []weights.Holder { return holdersOf(g.Membership(), hash, piece) },
	})
	return h.weights
}

// answering says that answers run on this gateway.
func (h *host) answering() bool {
	g := h.started.Load()
	return g != nil && g.Answering()
}

// modelFile is a file with a model's vocabulary: the model itself, from the
// store, or else its header alone, which a node gives. With several gateways, a
// model was added at one of them.
func (h *host) modelFile(rec *control.ModelRecord) (string, error) {
	path := h.store.Path(rec.Hash)
	if len(rec.Pieces) == 0 {
		path = rec.Source // of a time before there was a store
	}
	_, err := os.Stat(path)
	if err == nil || len(rec.Pieces) == 0 {
		return path, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), headerWithin)
	defer cancel()
	if path, err = h.header(ctx, rec); err != nil {
		return "", fmt.Errorf("the model is not at this gateway, and no node gave its header yet: %w", err)
	}
	return path, nil
}

// headerWithin bounds one try; the gateway tries again.
const headerWithin = 5 * time.Second

// header fetches a model's metadata from a node that holds layers of it.
func (h *host) header(ctx context.Context, rec *control.ModelRecord) (string, error) {
	cache, err := weights.OpenCache(h.cfg.dir.file("headers"), h.cfg.log)
	if err != nil {
		return "", err
	}
	var wanted []control.Piece
	for _, p := range rec.Pieces {
		have := cache.Has(rec.Hash, p.Name)
		if (p.Name == control.PieceManifest || p.Name == control.PieceHeader) && !have {
			wanted = append(wanted, p)
		}
	}
	slices.SortFunc(wanted, func(a, b control.Piece) int { // the manifest says what the rest must be
		return cmp.Compare(b.Name, a.Name)
	})
	creds := h.plane.Credentials()
	fetcher := weights.NewFetcher(weights.FetcherConfig{
		Cache: cache, Gateways: h.gateways, Log: h.cfg.log, Stored: func() {},
		Gateway: weights.Client(creds, identity.RoleGateway, ""),
		Node:    func(name string) *http.Client { return weights.Client(creds, identity.RoleNode, name) },
	})
	defer fetcher.Close()
	if err := fetcher.Fetch(ctx, rec.Hash, wanted, nil, nil); err != nil {
		return "", err
	}
	return filepath.Join(cache.Dir(), rec.Hash, control.PieceHeader), nil
}

// gateways are all of the swarm's: this one sends to nodes, others may have the
// model.
func (h *host) gateways() []string {
	return append(h.plane.JoinAddresses(), h.plane.OtherGateways()...)
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
