package gateway

import (
	"context"
	"sync"
	"time"

	"hecate/internal/control"
	"hecate/pool"
)

const (
	// reachEvery is how often the gateway looks whom it cannot reach.
	reachEvery = time.Second
	// reachWait is how long a node may live without one connection before it
	// counts as out of reach: several tries of the pool.
	reachWait = 3 * time.Second
	// askEvery is how often a node out of reach is asked to connect.
	askEvery = 2 * time.Second
)

// reach knows which nodes live and cannot be dialled: behind a firewall, a
// translated address, or half a cable. They are asked to connect to us. It is
// steer's; only reversed may be asked by others.
type reach struct {
	groups map[string]control.DataGroup // of the map that the pool follows
	since  map[string]time.Time         // living without a connection
	asked  time.Time
	asking sync.WaitGroup
	mu     sync.Mutex
	back   map[string]uint64 // incarnations out of reach, by node
}

// unreachable says that this start of a node was tried in vain. A new one may
// be elsewhere, and is tried first.
func (r *reach) unreachable(m *control.Member) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	incarnation, known := r.back[m.ID]
	return known && incarnation == m.Record.Incarnation
}

// reversed says that a node connects to us.
func (r *reach) reversed(node string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.back[node]
	return known
}

// follow takes what the pool was told.
func (r *reach) follow(m control.DataMap) {
	r.groups = m.Groups
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.back {
		if g, in := m.Groups[id]; in && !g.Reverse {
			delete(r.back, id)
		}
	}
}

// give notes that a node is out of reach.
func (r *reach) give(m *control.Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.back == nil {
		r.back = map[string]uint64{}
	}
	r.back[m.ID] = m.Record.Incarnation
}

// lost lists living members of the map that have no connection, for so long
// that none will come.
func (r *reach) lost(now time.Time, view *control.View, ready func(string) bool) (out []*control.Member) {
	waiting := map[string]time.Time{}
	for id, g := range r.groups {
		m := view.Member(id)
		if g.Reverse || m == nil || m.Record == nil || m.Status != control.StatusAlive || ready(id) {
			continue
		}
		waiting[id] = now
		if began, known := r.since[id]; known {
			waiting[id] = began
		}
		if now.Sub(waiting[id]) >= reachWait {
			out = append(out, m)
			delete(waiting, id)
		}
	}
	r.since = waiting
	return out
}

// lookAround finds nodes out of reach and asks those to connect.
func (g *Gateway) lookAround(ctx context.Context) {
	if g.cfg.Reverse == nil {
		return
	}
	ready := func(id string) bool {
		// A link that was told to fail is not to be got around.
		return g.cfg.Pool.Ready(id).Ready || g.cfg.Links != nil && g.cfg.Links.Bent(id)
	}
	now := time.Now()
	for _, m := range g.reach.lost(now, g.cfg.Membership.View(), ready) {
		g.log.Warn("a node cannot be reached; it is asked to connect", "node", m.ID, "at", m.Record.Profile.Endpoints)
		g.reach.give(m)
	}
	if now.Sub(g.reach.asked) < askEvery {
		return
	}
	g.reach.asked = now
	for id, group := range g.reach.groups {
		if group.Reverse {
			g.reach.asking.Go(func() { g.askToConnect(ctx, id) })
		}
	}
}

// askToConnect is repeated, so a question that is lost does no harm.
func (g *Gateway) askToConnect(ctx context.Context, node string) {
	ctx, cancel := context.WithTimeout(ctx, askEvery)
	defer cancel()
	err := control.Call(ctx, g.cfg.Bus, node, control.CommandDial,
		control.DialRequest{Gateway: g.cfg.Name, Addresses: g.cfg.Reverse()}, nil)
	if err != nil && ctx.Err() == nil {
		g.log.Warn("a node out of reach does not connect", "node", node, "because", err)
	}
}

// poolMap words the control plane's map for the pool.
func poolMap(m control.DataMap) pool.Map {
	out := pool.Map{Revision: m.Revision, Hash: m.Hash, Groups: map[string]pool.Group{}}
	for id, group := range m.Groups {
		if group.Reverse {
			out.Groups[id] = pool.Group{pool.IP4: {{Addr: reverseAddr, Kind: pool.Reverse}}}
			continue
		}
		out.Groups[id] = pool.GroupOf(append(append([]string{}, group.IP4...), group.IP6...)...)
	}
	return out
}
