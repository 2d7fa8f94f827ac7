package gateway

import (
	"context"
	"errors"
	"slices"
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
	// knockFirst is when a node out of reach is tried again, and how soon after a
	// first success for the second one, which counts; knockMost is the longest
	// pause, after failures, and the first one for a node that was in reach again
	// already and was lost: each turn costs a swap of connections.
	knockFirst, knockMost = 5 * time.Second, 2 * time.Minute
	// knockWithin bounds one try.
	knockWithin = 2 * time.Second
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
	back   map[string]away   // out of reach, by node
	turned map[string]uint64 // incarnations that were in reach again
}

// away is a node out of reach.
type away struct {
	incarnation uint64
	next        time.Time // when it is tried again
	pause       time.Duration
	answered    bool // the last try
}

// unreachable says that this start of a node was tried in vain. A new one may
// be elsewhere, and is tried first.
func (r *reach) unreachable(m *control.Member) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, known := r.back[m.ID]
	return known && a.incarnation == m.Record.Incarnation
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
func (r *reach) give(now time.Time, m *control.Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.back == nil {
		r.back, r.turned = map[string]away{}, map[string]uint64{}
	}
	pause := knockFirst
	if r.turned[m.ID] == m.Record.Incarnation {
		pause = knockMost
	}
	r.back[m.ID] = away{incarnation: m.Record.Incarnation, next: now.Add(pause), pause: pause}
}

// due lists the nodes out of reach that are to be tried again now.
func (r *reach) due(now time.Time) (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, a := range r.back {
		if now.Before(a.next) {
			continue
		}
		a.next = now.Add(max(a.pause, knockWithin+time.Second))
		r.back[id] = a
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// tried notes how a try ended, and says whether the node is in reach again: it
// answered twice in a row.
func (r *reach) tried(now time.Time, id string, answered bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, known := r.back[id]
	if !known {
		return false
	}
	if answered && a.answered {
		r.turned[id] = a.incarnation
		delete(r.back, id)
		return true
	}
	if a.pause = min(2*a.pause, knockMost); answered {
		a.pause = knockFirst
	}
	a.answered, a.next = answered, now.Add(a.pause)
	r.back[id] = a
	return false
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
		g.reach.give(now, m)
	}
	g.knock(ctx, now)
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

// knock tries nodes out of reach again: what kept us away may be over, and a direct
// connection is the better one.
func (g *Gateway) knock(ctx context.Context, now time.Time) {
	view := g.cfg.Membership.View()
	for _, id := range g.reach.due(now) {
		m := view.Member(id)
		if g.cfg.Knock == nil || m == nil || m.Record == nil || !m.Status.Living() || m.Record.Reverse || g.cfg.Links != nil && g.cfg.Links.Bent(id) {
			continue
		}
		g.reach.asking.Go(func() {
			err := g.knockAt(ctx, id, m.Record.Profile.Endpoints)
			if g.reach.tried(time.Now(), id, err == nil) {
				g.log.Info("a node can be reached again", "node", id, "at", m.Record.Profile.Endpoints)
			}
		})
	}
}

// knockAt tries the addresses in turn.
func (g *Gateway) knockAt(ctx context.Context, node string, addresses []string) error {
	err := errors.New("it says no address")
	for _, address := range addresses {
		within, cancel := context.WithTimeout(ctx, knockWithin)
		err = g.cfg.Knock(within, node, address)
		cancel()
		if err == nil {
			return nil
		}
	}
	return err
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
