package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"hecate/pool/wire"
)

// directPool holds the dedicated connections of fallback = direct: one session
// each, outside floors, refill and generations.
type directPool struct {
	mu      sync.Mutex
	conns   map[*directConn]struct{}
	since   time.Time // when the mode changed last
	closing bool
}

func (d *directPool) init() { d.conns = make(map[*directConn]struct{}) }

func (d *directPool) list() []*directConn {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]*directConn, 0, len(d.conns))
	for c := range d.conns {
		list = append(list, c)
	}
	return list
}

func (d *directPool) configure() {
	for _, c := range d.list() {
		c.link.configure()
	}
}

// directConn is one such connection.
type directConn struct {
	p       *Pool
	group   *group
	link    *link
	session *session
	opened  time.Time
	over    sync.Once
	mu      sync.Mutex
	overAt  time.Time // the session ended then
}

// openDirect connects for one session. Groups that can only be reached in
// reverse keep using the pool.
func (p *Pool) openDirect(ctx context.Context, g *group, opt OpenOptions) (Session, error) {
	targets := p.directTargets(g, opt.Endpoint)
	if len(targets) == 0 {
		s, err := p.tryOpen(g, opt)
		if s == nil && err == nil {
			return p.openFailed(openNoWriter, &NoWriterError{Group: g.name, Reason: "reachable in reverse only, and not connected"})
		}
		return p.opened(s, err)
	}
	var faults []error
	for _, t := range targets {
		s, err := p.dialDirect(ctx, g, t, opt)
		if err == nil {
			return s, nil
		}
		var large *TooLargeError
		if errors.As(err, &large) {
			return p.openFailed(openTooLarge, err)
		}
		faults = append(faults, err)
		if ctx.Err() != nil || p.closed.Load() {
			break
		}
	}
	err := errors.Join(faults...)
	if ctx.Err() != nil {
		return p.openFailed(openCancelled, fmt.Errorf("open on %q directly: %w", g.name, context.Cause(ctx)))
	}
	return p.openFailed(openDirectFailed, &NoWriterError{Group: g.name, Reason: err.Error()})
}

type directTarget struct {
	key      pairKey
	endpoint Endpoint
}

// directTargets lists the endpoints to try, the preferred one first, ip4 before
// ip6.
func (p *Pool) directTargets(g *group, prefer string) []directTarget {
	var list []directTarget
	for _, family := range []Family{IP4, IP6} {
		key := pairKey{g.name, family}
		for _, e := range p.endpointsLocked(key) {
			if e.Kind == Dial {
				list = append(list, directTarget{key, e})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b directTarget) int {
		switch {
		case a.endpoint.Addr == prefer && b.endpoint.Addr != prefer:
			return -1
		case b.endpoint.Addr == prefer && a.endpoint.Addr != prefer:
			return 1
		}
		return 0
	})
	return list
}

// dialDirect connects to one endpoint and opens the session on it.
func (p *Pool) dialDirect(ctx context.Context, g *group, t directTarget, opt OpenOptions) (Session, error) {
	ctx, cancel := context.WithTimeout(ctx, p.settings().ConnectTimeout.D())
	defer cancel()
	stop := context.AfterFunc(p.ctx, cancel)
	defer stop()
	parts, err := p.dialEndpoint(ctx, t.key, t.endpoint)
	if err != nil {
		return nil, err
	}
	c := &directConn{p: p, group: g, opened: time.Now()}
	c.link = newLink(parts, p.st, p.counts, p.policy.Load)
	if len(opt.Payload) > c.link.maxMessage {
		p.discard(parts)
		return nil, &TooLargeError{Bytes: len(opt.Payload), Limit: c.link.maxMessage}
	}
	c.session, err = p.reg.register(func(id uint64) *session { return newSession(id, c, c.link) })
	if err != nil {
		p.discard(parts)
		return nil, err
	}
	if !c.join() {
		p.reg.unregister(c.session)
		p.discard(parts)
		return nil, ErrPoolClosed
	}
	c.link.start(c)
	frames := 1 + wire.Chunks(len(opt.Payload))
	if c.link.out.reserve(frames, len(opt.Payload)) != taken || !p.launch(c.session, opt.Payload) {
		<-c.session.done
		return nil, c.session.Err()
	}
	return c.session, nil
}

// join puts the connection into the set, unless the pool closes.
func (c *directConn) join() bool {
	d := &c.p.direct
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return false
	}
	d.conns[c] = struct{}{}
	c.p.wg.Add(1)
	return true
}

func (c *directConn) find(id uint64) *session {
	if id == c.session.id {
		return c.session
	}
	return nil
}

func (c *directConn) open(uint64, wire.Open) bool { return false }
func (c *directConn) goAway(wire.Reason)          { c.link.markDraining() }
func (c *directConn) wanted(int)                  {}
func (c *directConn) answered(took time.Duration) { c.group.trips.sample(took) }
func (c *directConn) doubtAfter() time.Duration   { return c.p.doubtAfter(c.group) }
func (c *directConn) overdue(sent time.Time)      { c.p.suspect(c.group, sent) }
func (c *directConn) healthChanged()              {}

// tick ends a stalled session, and a finished connection that does not go.
func (c *directConn) tick(now time.Time) {
	endStalledSession(c.session, now)
	c.mu.Lock()
	stuck := !c.overAt.IsZero() && now.Sub(c.overAt) >= stuckAfter
	c.mu.Unlock()
	if stuck {
		c.link.fail(linkFault{why: lossForced, detail: "did not end in time"})
	}
}

// ended implements sessionOwner: the connection has served its purpose.
func (c *directConn) ended(s *session, _ endReason) {
	c.p.reg.unregister(s)
	c.p.idle.ring()
	c.over.Do(func() {
		c.mu.Lock()
		c.overAt = time.Now()
		c.mu.Unlock()
		// The CLOSE is queued by whoever ended the session, after this.
		time.AfterFunc(0, c.link.retire)
	})
}

func (c *directConn) lost(f *linkFault) {
	c.p.counts.losses[f.why].Add(1)
	c.session.end(&CloseError{Code: CodeLost, Detail: f.detail, Silent: f.why == lossSilent}, endLost, false, nil)
	d := &c.p.direct
	d.mu.Lock()
	delete(d.conns, c)
	d.mu.Unlock()
	c.p.wg.Done()
}

// cutover notes a change of mode. New sessions follow it at once; those of the
// other mode live on under the force-close rule.
func (p *Pool) cutover(mode Fallback) {
	p.direct.mu.Lock()
	p.direct.since = time.Now()
	p.direct.mu.Unlock()
	p.event(Event{Kind: EventFallback, Reason: string(mode)})
}

// cutoverLocked ends sessions of the other mode whose time is over.
func (p *Pool) cutoverLocked(now time.Time, s *Settings, fx *effects) {
	p.direct.mu.Lock()
	since := p.direct.since
	p.direct.mu.Unlock()
	if since.IsZero() || now.Sub(since) < drainLimit(s) {
		return
	}
	if s.Fallback == FallbackDirect {
		for _, w := range p.sortedLocked() {
			if w.sessions.Load() > 0 && hasDialled(p.endpointsLocked(w.pair())) {
				fx.cut = append(fx.cut, p.reg.sessionsOf(w)...)
				p.inv.forced[forceCutover]++
			}
		}
		return
	}
	for _, c := range p.direct.list() {
		fx.cut = append(fx.cut, c.session)
		p.inv.forced[forceCutover]++
	}
}

func hasDialled(endpoints []Endpoint) bool {
	return slices.ContainsFunc(endpoints, func(e Endpoint) bool { return e.Kind == Dial })
}
