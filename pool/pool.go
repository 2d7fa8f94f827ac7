package pool

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"hecate/pool/wire"
)

// Pool is the gateway's side: it keeps writers to every group of the desired
// map and binds sessions to them.
type Pool struct {
	cfg    Config
	hs     *handshaker
	st     *store
	counts *counters
	policy atomic.Pointer[Settings]
	seed   uint64
	draws  atomic.Uint64 // random numbers drawn so far

	reg    registry
	co     coordinator
	groups atomic.Pointer[map[string]*group] // immutable; the desired map's
	closed atomic.Bool
	idle   bell // rings when a session ends

	ctx    context.Context // ends when the pool must let go of everything
	cancel context.CancelFunc
	wake   chan struct{}  // capacity 1: the governor has work
	wg     sync.WaitGroup // governor, connects, links, direct sessions

	openFailures [openFailureKinds]atomic.Uint64

	// inv is the inventory: writers, pairs and policy state. Its lock is the
	// first in the order.
	inv struct {
		sync.Mutex
		lastWriter   uint64
		writers      map[uint64]*writer
		pairs        map[pairKey]*pair
		known        map[string]*group // also those that left the map and still have writers
		dialing      int               // connects under way, replacements included
		turn         int               // where refill starts, so that no pair is always last
		ending       bool              // no writer may join any more
		replacements [replacementOutcomes]uint64
		connects     [connectOutcomes]uint64
		forced       [forceCauses]uint64
		reverse      map[*reverseListener]struct{}
	}

	direct directPool
}

// New starts a pool with an empty desired map. It lists every fault of the
// configuration at once.
func New(cfg Config) (*Pool, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	p := &Pool{cfg: cfg, st: new(store), counts: new(counters), wake: make(chan struct{}, 1), seed: cfg.Seed}
	if p.seed == 0 {
		p.seed = rand.Uint64()
	}
	p.policy.Store(&cfg.Settings)
	p.groups.Store(&map[string]*group{})
	p.inv.writers = make(map[uint64]*writer)
	p.inv.pairs = make(map[pairKey]*pair)
	p.inv.known = make(map[string]*group)
	p.inv.reverse = make(map[*reverseListener]struct{})
	p.direct.init()
	p.hs = &handshaker{
		node: cfg.NodeID, swarm: cfg.SwarmID, role: wire.RoleGateway,
		identify: cfg.Identify, settings: p.policy.Load,
	}
	if cfg.TLS != nil {
		p.hs.tls = clientTLS(cfg.TLS)
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Add(1)
	go p.govern()
	return p, nil
}

// Apply makes m the desired map. It returns at once; connections follow in the
// background (see Ready and Snapshot). A map that is older than the current
// one is refused with ErrStaleRevision; the same map again changes nothing.
// Sessions can be opened on the new groups, and no longer on the missing ones,
// from the moment Apply returns.
func (p *Pool) Apply(m Map) error {
	if p.closed.Load() {
		return ErrPoolClosed
	}
	if err := m.Validate(); err != nil {
		return err
	}
	m = m.clone()
	now := time.Now()
	p.inv.Lock()
	changed, err := p.co.apply(m, now, p.policy.Load().Coalesce.D())
	if changed {
		p.adoptMapLocked(m, now)
	}
	p.inv.Unlock()
	if changed {
		p.event(Event{Kind: EventMapApplied, N: len(m.Groups), Reason: m.Hash})
		p.poke()
	}
	return err
}

// adoptMapLocked tells the hot path which groups are wanted. A group that comes
// back while it still has writers is the same group.
func (p *Pool) adoptMapLocked(m Map, now time.Time) {
	groups := make(map[string]*group, len(m.Groups))
	for name := range m.Groups {
		g := p.inv.known[name]
		if g == nil {
			g = &group{name: name, lastBusy: now}
			p.inv.known[name] = g
		}
		g.wanted.Store(true)
		groups[name] = g
	}
	for name, g := range *p.groups.Load() {
		if groups[name] == nil {
			g.wanted.Store(false)
			g.changed.ring() // whoever waits for it must not wait any longer
		}
	}
	p.groups.Store(&groups)
	p.makePairsLocked(m)
	p.publishLocked()
}

// makePairsLocked keeps one pair per group and family of the map; a pair that
// nobody wants is dropped with its memory of failures.
func (p *Pool) makePairsLocked(m Map) {
	for name, families := range m.Groups {
		for family, endpoints := range families {
			key := pairKey{name, family}
			if len(endpoints) > 0 && p.inv.pairs[key] == nil {
				pr := newPair(key, p.inv.known[name])
				pr.floor = staticRequirement(len(endpoints), p.settings())
				pr.target = pr.floor
				p.inv.pairs[key] = pr
			}
		}
	}
	for key := range p.inv.pairs {
		if len(m.Groups[key.group][key.family]) == 0 {
			delete(p.inv.pairs, key)
		}
	}
}

// Reload changes the policies without a restart. Nothing changes when any
// setting is out of range; active sessions are never unbound by it. Windows and
// queue limits of sessions apply to connections made from now on.
func (p *Pool) Reload(s Settings) error {
	if p.closed.Load() {
		return ErrPoolClosed
	}
	if err := s.Validate(); err != nil {
		return err
	}
	old := p.policy.Swap(&s)
	p.inv.Lock()
	for _, w := range p.inv.writers {
		w.link.configure()
	}
	p.inv.Unlock()
	p.direct.configure()
	p.event(Event{Kind: EventSettings})
	if old.Fallback != s.Fallback {
		p.cutover(s.Fallback)
	}
	p.poke()
	return nil
}

// poke wakes the governor. It never blocks.
func (p *Pool) poke() { kick(p.wake) }

func (p *Pool) settings() *Settings { return p.policy.Load() }

func (p *Pool) event(e Event) {
	e.At = time.Now()
	p.cfg.Observe(e)
}

// random is the next number of a sequence that the seed determines: splitmix64
// over a counter, so that drawing takes no lock.
func (p *Pool) random() uint64 {
	z := p.seed + p.draws.Add(1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// jitter is a random number in 0..1.
func (p *Pool) jitter() float64 { return float64(p.random()>>11) / (1 << 53) }
