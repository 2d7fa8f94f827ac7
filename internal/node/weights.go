package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/identity"
	"hecate/internal/engine"
	"hecate/internal/weights"
)

// weightsConfig says where a node keeps its pieces and how it comes by them.
type weightsConfig struct {
	dir         string // the node's data folder
	shared      string // the gateway's store, when it is on this machine; "": it is not
	listen      string // where neighbours fetch from
	rate        int64  // bytes per second, in and out each; 0: no bound
	credentials *identity.Credentials
	removed     func(node string) bool // the swarm does not know that node any more
	changed     func()
	busy        func() bool // answers run here
	log         *slog.Logger
}

// larder owns the node's pieces on disk: it fetches them, gives them to the engine
// and to neighbours, and throws away what is not wanted any more.
type larder struct {
	cfg      weightsConfig
	cache    *weights.Cache
	shared   *weights.Store // nil: none
	fetcher  *weights.Fetcher
	listener net.Listener
	stored   atomic.Pointer[[]control.Stored]
	receipts receipts
	mu       struct {
		sync.Mutex
		store    control.Store // of the newest attachment; nil before
		gateways []string
		records  map[string]*control.ModelRecord // by content hash
	}
}

// openLarder takes folder and port.
func openLarder(cfg weightsConfig) (*larder, error) {
	l := &larder{cfg: cfg}
	l.mu.records = map[string]*control.ModelRecord{}
	var err error
	if l.cache, err = weights.OpenCache(filepath.Join(cfg.dir, "weights"), cfg.log); err != nil {
		return nil, err
	}
	if cfg.shared != "" {
		if l.shared, err = weights.OpenStore(cfg.shared); err != nil {
			return nil, err
		}
	}
	if l.listener, err = net.Listen("tcp", cfg.listen); err != nil {
		return nil, fmt.Errorf("listen for neighbours that fetch weights: %w", err)
	}
	l.fetcher = weights.NewFetcher(weights.FetcherConfig{
		Cache: l.cache, Gateways: l.gateways, Rate: cfg.rate, Busy: cfg.busy, Log: cfg.log, Stored: l.restock,
		Gateway: weights.Client(cfg.credentials, identity.RoleGateway, ""),
		Node:    func(name string) *http.Client { return weights.Client(cfg.credentials, identity.RoleNode, name) },
	})
	l.restock()
	return l, nil
}

// openLarder makes the node's, beside its data plane.
func (n *Node) openLarder() (err error) {
	listen := n.cfg.WeightsListen
	if listen == "" {
		host, _, err := net.SplitHostPort(n.cfg.Listen)
		if err != nil {
			return fmt.Errorf("the address of the data plane: %w", err)
		}
		listen = net.JoinHostPort(host, "0")
	}
	n.larder, err = openLarder(weightsConfig{
		dir: n.cfg.Data, shared: n.cfg.SharedStore, listen: listen, rate: n.cfg.FetchRate,
		credentials: n.member.Credentials(), changed: n.member.Changed, busy: n.server.gauge.answers, log: n.log,
		removed: func(node string) bool {
			doc := n.doc.Load()
			return doc != nil && doc.DesiredOf(node) == control.DesiredRemoved
		},
	})
	return err
}

// use takes the store and the gateways of the newest attachment.
func (l *larder) use(s control.Store, gateways []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.store, l.mu.gateways = s, gateways
}

func (l *larder) gateways() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.mu.gateways)
}

// restock looks at what is on disk and lets the gateway know.
func (l *larder) restock() {
	s := l.cache.Stored()
	l.stored.Store(&s)
	l.cfg.changed()
}

// fill writes this part of a health report.
func (l *larder) fill(h *control.Health) {
	h.Stored, h.Received = *l.stored.Load(), l.receipts.list()
	if tcp, ok := l.listener.Addr().(*net.TCPAddr); ok {
		h.WeightsPort = tcp.Port
	}
}

// serve gives pieces to neighbours until ctx ends.
func (l *larder) serve(ctx context.Context) error {
	handler := weights.NewServer(weights.ServerConfig{
		Library: l.cache, Rate: l.cfg.rate, Busy: l.cfg.busy, Log: l.cfg.log,
		Peer: l.peer,
	})
	srv := &http.Server{
		Handler: handler, ConnContext: identity.WithConn, TLSConfig: l.cfg.credentials.Server(nil, identity.RoleNode, identity.RoleGateway),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(l.cfg.log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // who fetches goes on elsewhere
	defer stop()
	if err := srv.ServeTLS(l.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("give weights to neighbours: %w", err)
	}
	return nil
}

// peer names the neighbour, or the gateway, that asks. The certificate of one that was removed is
// good for a while; the plan is newer.
func (l *larder) peer(r *http.Request) (string, error) {
	name, err := identity.PeerName(*r.TLS)
	if err == nil && l.cfg.removed(name) {
		err = fmt.Errorf("%s was removed from the swarm", name)
	}
	return name, err
}

// record finds a model of the plan in the catalogue.
func (l *larder) record(ctx context.Context, model, hash string) (*control.ModelRecord, error) {
	l.mu.Lock()
	rec, store := l.mu.records[hash], l.mu.store
	l.mu.Unlock()
	if rec != nil {
		return rec, nil
	}
	if store == nil {
		return nil, errors.New("the control plane was not reached yet")
	}
	entry, err := store.Get(ctx, control.BucketModels, model)
	if err != nil {
		return nil, fmt.Errorf("look up model %s: %w", model, err)
	}
	rec = &control.ModelRecord{}
	if err := control.Decode(entry.Value, rec); err != nil {
		return nil, err
	}
	if rec.Hash != hash {
		return nil, fmt.Errorf("model %s: the plan speaks of content %.12s, the catalogue of %.12s", model, hash, rec.Hash)
	}
	if len(rec.Pieces) == 0 {
		return nil, fmt.Errorf("the catalogue does not say which pieces %s has: add it again", model)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.records[hash] = rec
	return rec, nil
}

// sharedView gives the gateway's own file, where it is on this machine.
func (l *larder) sharedView(rec *control.ModelRecord, layers engine.Range) *weights.View {
	if l.shared == nil {
		return nil
	}
	v, err := l.shared.View(rec.Hash, rec.Pieces, layers.First, layers.Last)
	if err != nil {
		l.cfg.log.Warn("the gateway's file is not used; fetching instead", "model", rec.ID, "because", err)
		return nil
	}
	return v
}

// Ready implements Source.
func (l *larder) Ready(ctx context.Context, model, hash string, layers engine.Range) (bool, error) {
	rec, err := l.record(ctx, model, hash)
	if err != nil {
		return false, err
	}
	if v := l.sharedView(rec, layers); v != nil {
		return true, v.Close()
	}
	lacking, err := l.cache.Lacking(hash, rec.Pieces, layers.First, layers.Last)
	return err == nil && len(lacking) == 0, err
}

// Fetch implements Source.
func (l *larder) Fetch(ctx context.Context, model, hash string, layers engine.Range, then []engine.Range, progress func(done, total int64)) error {
	rec, err := l.record(ctx, model, hash)
	if err != nil {
		return err
	}
	tell := func(p weights.Progress) {
		l.receipts.add(receipt{hash, p.From, layers.First}, p.Came)
		progress(p.Done, p.Total)
	}
	for { // the manifest comes alone: it says what else there is
		lacking, err := l.cache.Lacking(hash, rec.Pieces, layers.First, layers.Last)
		if err != nil || len(lacking) == 0 {
			return err
		}
		if err := l.fetcher.Fetch(ctx, hash, lacking, l.lackingOf(rec, then), tell); err != nil {
			return err
		}
	}
}

// lackingOf lists the pieces of some ranges, as far as it is known yet which.
func (l *larder) lackingOf(rec *control.ModelRecord, ranges []engine.Range) (out []control.Piece) {
	for _, r := range ranges {
		lacking, err := l.cache.Lacking(rec.Hash, rec.Pieces, r.First, r.Last)
		if err != nil {
			return nil // whoever fetches them will be told
		}
		for _, p := range lacking {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// Open implements Source.
func (l *larder) Open(ctx context.Context, model, hash string, layers engine.Range) (engine.Weights, error) {
	rec, err := l.record(ctx, model, hash)
	if err != nil {
		return nil, err
	}
	if v := l.sharedView(rec, layers); v != nil {
		return v, nil
	}
	return l.cache.View(hash, layers.First, layers.Last)
}

// Tidy implements Source.
func (l *larder) Tidy(doc *control.PlanDocument, node string, after time.Duration) {
	type need struct{ hash, piece string }
	needs := map[need]bool{}
	for _, f := range doc.Wanted(node) {
		hash := doc.Models[f.Model]
		needs[need{hash, control.PieceManifest}] = true
		m, err := l.cache.Manifest(hash)
		if err != nil {
			continue // nothing of it is here yet
		}
		for _, piece := range m.Need(f.Layers.First, f.Layers.Last) {
			needs[need{hash, piece}] = true
		}
	}
	l.receipts.keep(func(hash string) bool { return needs[need{hash, control.PieceManifest}] })
	freed := l.cache.Sweep(func(hash, piece string) bool { return needs[need{hash, piece}] }, after)
	if freed > 0 {
		l.cfg.log.Info("weights that the plan does not give this node were removed", "bytes", freed)
		l.restock()
	}
}
