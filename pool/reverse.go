package pool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// reverseListener is one call of ServeReverse.
type reverseListener struct {
	hs   *handshaker
	stop context.CancelFunc
}

// maxReverseShakes bounds connections in handshake on a reverse listener: a
// stranger costs a socket and a goroutine for connect_timeout at most.
const maxReverseShakes = 256

// ServeReverse accepts connections from nodes that cannot be dialled, until ctx
// ends, the listener fails or the pool closes; it closes the listener. Each
// connection becomes a writer of the node's group, if the desired map gives that
// group an endpoint of kind Reverse; the pool tells the node how many it wants.
// A ctx that ends, and a pool that closes, are not errors.
func (p *Pool) ServeReverse(ctx context.Context, l net.Listener) error {
	r, ctx, err := p.newReverse(ctx)
	if err != nil {
		_ = l.Close()
		return err
	}
	defer r.stop()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	shakes := make(chan struct{}, maxReverseShakes)
	for {
		raw, err := l.Accept()
		if err != nil {
			_ = l.Close()
			p.inv.Lock()
			delete(p.inv.reverse, r)
			p.inv.Unlock()
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept reverse connections on %v: %w", l.Addr(), err)
		}
		select {
		case shakes <- struct{}{}:
		default:
			_ = raw.Close()
			p.event(Event{Kind: EventRefused, Endpoint: remoteAddr(raw), Reason: "too many handshakes"})
			continue
		}
		if !p.joinReverse() {
			_ = raw.Close()
			return nil
		}
		go func() {
			defer p.wg.Done()
			defer func() { <-shakes }()
			p.greetReverse(ctx, r, raw)
		}()
	}
}

func (p *Pool) newReverse(ctx context.Context) (*reverseListener, context.Context, error) {
	hs := *p.hs
	if p.cfg.TLS != nil {
		if p.cfg.TLS.ClientCAs == nil && p.cfg.TLS.RootCAs == nil {
			return nil, nil, errors.New("serve reverse connections: TLS names no CA")
		}
		hs.tls = serverTLS(p.cfg.TLS)
	}
	ctx, stop := context.WithCancel(ctx)
	r := &reverseListener{hs: &hs, stop: stop}
	p.inv.Lock()
	defer p.inv.Unlock()
	if p.inv.ending {
		stop()
		return nil, nil, ErrPoolClosed
	}
	p.inv.reverse[r] = struct{}{}
	return r, ctx, nil
}

// joinReverse counts a handshake among what Close waits for.
func (p *Pool) joinReverse() bool {
	p.inv.Lock()
	defer p.inv.Unlock()
	if p.inv.ending {
		return false
	}
	p.wg.Add(1)
	return true
}

func (p *Pool) greetReverse(ctx context.Context, r *reverseListener, raw net.Conn) {
	ctx, cancel := context.WithTimeout(ctx, p.settings().ConnectTimeout.D())
	defer cancel()
	parts, err := r.hs.accept(ctx, raw, true)
	if err != nil {
		p.event(Event{Kind: EventRefused, Endpoint: remoteAddr(raw), Reason: err.Error()})
		return
	}
	var fx effects
	w := p.adoptReverse(parts, &fx)
	if w == nil {
		p.discard(parts)
		return
	}
	p.event(w.describe(EventWriterUp))
	p.carryOut(&fx)
	p.poke()
}

// adoptReverse makes the connection a writer where one is missing: in a pending
// generation first, since it waits for exactly that; or where one is to be
// replaced. Nil: nowhere.
func (p *Pool) adoptReverse(parts linkParts, fx *effects) *writer {
	s := p.settings()
	p.inv.Lock()
	defer p.inv.Unlock()
	if p.inv.ending {
		return nil
	}
	have := p.censusLocked()
	alive := p.co.alive()
	for i := len(alive) - 1; i >= 0; i-- {
		g := alive[i]
		key, e, ok := reverseEndpoint(g, parts.peer.Node)
		pr := p.inv.pairs[key]
		if !ok || pr == nil {
			continue
		}
		full := have.byPair[pairGen{key, g.id}] >= g.needs(pr, s)
		victim := pr.awaited.victim
		if full && (victim == nil || victim.generation != g.id) {
			continue
		}
		pr.reachable = true
		p.inv.connects[connectOK]++
		w := p.newWriterLocked(pr, e, g.id, parts)
		if full {
			pr.awaited = heir{}
			fx.want = append(fx.want, wantTask{victim.link, reverseNeeds(alive, pr, s)})
			p.finishReplacementLocked(dialTask{gen: g, pair: pr, endpoint: e, victim: victim}, w, fx)
		} else {
			p.reg.publish(w)
		}
		p.publishLocked()
		pr.wanted = 0 // tell the newcomer too
		return w
	}
	p.inv.connects[connectDiscarded]++
	return nil
}

// reverseNeeds is how many connections of a reverse node all generations aim for.
func reverseNeeds(alive []*generation, pr *pair, s *Settings) (n int) {
	for _, g := range alive {
		if slices.ContainsFunc(g.endpoints(pr.key), isReverse) {
			n += g.needs(pr, s)
		}
	}
	return n
}

// reverseEndpoint is where a reverse node stands in a generation's map.
func reverseEndpoint(g *generation, node string) (pairKey, Endpoint, bool) {
	for _, family := range []Family{IP4, IP6} {
		key := pairKey{node, family}
		for _, e := range g.endpoints(key) {
			if e.Kind == Reverse {
				return key, e, true
			}
		}
	}
	return pairKey{}, Endpoint{}, false
}

// tellReverseLocked sends the sums that changed to the nodes, and again those that
// a node does not reach: connections do not keep the order of what each is told.
func (p *Pool) tellReverseLocked(fx *effects) {
	living := p.censusLocked().living
	for _, w := range p.sortedLocked() {
		pr := p.inv.pairs[w.pair()]
		if pr != nil && w.endpoint.Kind == Reverse && w.contour != contourDraining && (pr.asking != pr.wanted || living[w.pair()] < pr.asking) {
			fx.want = append(fx.want, wantTask{w.link, pr.asking})
		}
	}
	for _, pr := range p.inv.pairs {
		pr.wanted, pr.asking = pr.asking, 0
	}
}

// DialReverse connects to the gateway and serves its sessions until ctx ends,
// reconnecting as needed; the gateway says how many connections it wants, and
// until it did one is kept. It returns nil when ctx ends, after the same drain as
// Serve.
func (s *Server) DialReverse(ctx context.Context, cfg ReverseConfig) error {
	hs, err := s.reverseHandshaker(cfg)
	if err != nil {
		return err
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{KeepAlive: -1}).DialContext
	}
	hard, halt := context.WithCancel(context.WithoutCancel(ctx))
	defer halt()
	run := &serving{srv: s, hard: hard, conns: make(map[*serverConn]struct{})}
	run.want.Store(1)
	pause := reversePause
	for ctx.Err() == nil {
		changed := run.idle.heard()
		if run.fresh() >= int(run.want.Load()) {
			pause = reversePause
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		if err := run.dialOnce(ctx, hs, cfg); err == nil && !s.away() {
			continue
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, maxReversePause)
	}
	run.drain(halt)
	return nil
}

// Pauses of a reverse node between failed connects.
const (
	reversePause    = 250 * time.Millisecond
	maxReversePause = 10 * time.Second
)

func (s *Server) reverseHandshaker(cfg ReverseConfig) (*handshaker, error) {
	hs := *s.hs
	hs.reverse = true
	if s.cfg.TLS == nil {
		return &hs, nil
	}
	base := cfg.TLS
	if base == nil {
		base = s.cfg.TLS.Clone()
		if base.RootCAs == nil {
			base.RootCAs = base.ClientCAs
		}
	}
	if base.RootCAs == nil {
		return nil, errors.New("dial in reverse: TLS names no CA")
	}
	hs.tls = clientTLS(base)
	return &hs, nil
}

// dialOnce adds one connection, and waits a moment for the gateway's verdict: a
// connection that is closed at once was not wanted.
func (r *serving) dialOnce(ctx context.Context, hs *handshaker, cfg ReverseConfig) error {
	if !r.srv.admit() {
		return errors.New("too many connections")
	}
	shake, cancel := context.WithTimeout(ctx, r.srv.cfg.HandshakeTimeout)
	defer cancel()
	raw, err := cfg.Dial(shake, "tcp", cfg.Addr)
	if err == nil {
		var parts linkParts
		if parts, err = hs.dial(shake, raw, cfg.Gateway); err == nil {
			return r.probation(ctx, r.adopt(parts))
		}
	}
	r.srv.shaken()
	r.srv.event(Event{Kind: EventConnectFailed, Endpoint: cfg.Addr, Reason: err.Error()})
	return fmt.Errorf("connect to the gateway at %s: %w", cfg.Addr, err)
}

// probation is how long a new reverse connection must live to count as wanted.
func (r *serving) probation(ctx context.Context, c *serverConn) error {
	timer := time.NewTimer(reversePause)
	defer timer.Stop()
	select {
	case <-c.link.gone:
		return errors.New("the gateway did not want the connection")
	case <-c.told:
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// fresh counts connections that take sessions.
func (r *serving) fresh() int {
	n := 0
	for _, c := range r.list() {
		select {
		case <-c.link.draining:
		default:
			n++
		}
	}
	return n
}
