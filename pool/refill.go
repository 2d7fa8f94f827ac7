package pool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"hecate/pool/wire"
)

// dialTask is one connect under way, and what it is for.
type dialTask struct {
	gen      *generation
	pair     *pair
	endpoint Endpoint
	victim   *writer // to be replaced; nil: refill or warm-up
}

// connectOutcome is how a connect ended. Each has a counter.
type connectOutcome int

const (
	connectOK        connectOutcome = iota
	connectFailed                   // refused, timed out, TLS failed
	connectRefused                  // the hello was refused, by either side
	connectDiscarded                // succeeded, but nobody wants it any more
	connectCancelled                // given up by us
	connectOutcomes
)

var connectNames = [connectOutcomes]string{
	connectOK: "ok", connectFailed: "failed", connectRefused: "refused",
	connectDiscarded: "discarded", connectCancelled: "cancelled",
}

func (o connectOutcome) String() string { return connectNames[o] }

// refillRound is one look of the governor at what is missing.
type refillRound struct {
	now    time.Time
	s      *Settings
	fx     *effects
	have   census
	probes []dialTask // of broken endpoints
	next   time.Time  // when a pause ends; zero: none does
}

// waitUntil notes when looking again may help.
func (r *refillRound) waitUntil(at time.Time) {
	if at.After(r.now) && (r.next.IsZero() || at.Before(r.next)) {
		r.next = at
	}
}

// refillLocked closes the distance between floors and reality, and says when to
// look again, zero if no pause ends. Demand is what is missing now, so it cannot be
// forgotten: three writers lost together are three to restore. Endpoints that
// answered last time go first; probes of broken ones use at most half of the
// connects, so a dead group never holds up the others.
func (p *Pool) refillLocked(now time.Time, s *Settings, fx *effects) time.Time {
	keys := sortedPairs(p.inv.pairs)
	r := &refillRound{now: now, s: s, fx: fx, have: p.censusLocked()}
	p.inv.turn++
	for _, pr := range p.inv.pairs {
		pr.demand = 0
	}
	for _, g := range p.co.alive() {
		for i := range keys {
			p.refillPairLocked(r, g, p.inv.pairs[keys[(i+p.inv.turn)%len(keys)]])
		}
	}
	p.probeLocked(r)
	return r.next
}

// probeLocked tries broken endpoints, one connect each.
func (p *Pool) probeLocked(r *refillRound) {
	for _, t := range r.probes {
		switch {
		case p.inv.dialing >= max(1, r.s.ReconnectParallel/2):
			r.waitUntil(r.now.Add(fastPause))
			return
		case t.pair.circuit(t.endpoint.Addr).trying == 0:
			p.launchLocked(t, r.fx)
		}
	}
}

// census counts the writers that count towards a floor.
type census struct {
	byPair     map[pairGen]int
	byEndpoint map[endpointGen]int
	living     map[pairKey]int // of any generation
}

type pairGen struct {
	key pairKey
	gen uint64
}

type endpointGen struct {
	key  pairKey
	addr string
	gen  uint64
}

func (p *Pool) censusLocked() census {
	c := census{map[pairGen]int{}, map[endpointGen]int{}, map[pairKey]int{}}
	for _, w := range p.inv.writers {
		if w.contour == contourDraining {
			continue
		}
		c.byPair[pairGen{w.pair(), w.generation}]++
		c.byEndpoint[endpointGen{w.pair(), w.endpoint.Addr, w.generation}]++
		c.living[w.pair()]++
	}
	return c
}

// refillPairLocked starts the connects of one pair and generation.
func (p *Pool) refillPairLocked(r *refillRound, g *generation, pr *pair) {
	endpoints := g.endpoints(pr.key)
	need := g.needs(pr, r.s)
	if slices.ContainsFunc(endpoints, isReverse) {
		pr.asking += need
		if v := pr.awaited.victim; v != nil && v.generation == g.id {
			pr.asking++
		}
	}
	lacking := max(0, need-r.have.byPair[pairGen{pr.key, g.id}])
	pr.demand += lacking
	if !g.activeAt.IsZero() {
		pr.losses = min(pr.losses, lacking)
	}
	outage := p.inOutageLocked(r, pr, endpoints)
	dialled := slices.DeleteFunc(slices.Clone(endpoints), isReverse)
	if len(dialled) == 0 {
		return
	}
	for range lacking - pr.dialing[g.id] {
		e, until := p.chooseEndpointLocked(r, g, pr, dialled, outage)
		if e == (Endpoint{}) {
			r.waitUntil(until)
			return
		}
		t := dialTask{gen: g, pair: pr, endpoint: e}
		switch {
		case pr.circuit(e.Addr).open(r.s):
			r.probes = append(r.probes, t)
			return
		case p.inv.dialing >= r.s.ReconnectParallel:
			return // a finished connect wakes the governor
		}
		p.launchLocked(t, r.fx)
		r.have.byEndpoint[endpointGen{pr.key, e.Addr, g.id}]++
	}
}

func isReverse(e Endpoint) bool { return e.Kind == Reverse }

// needs is how many writers the generation aims for: while it warms up, the full
// requirement, then what the floor says.
func (g *generation) needs(pr *pair, s *Settings) int {
	if g.activeAt.IsZero() {
		return staticRequirement(len(g.endpoints(pr.key)), s)
	}
	return pr.target
}

// inOutageLocked: the only endpoint of a group is down, with every writer.
func (p *Pool) inOutageLocked(r *refillRound, pr *pair, endpoints []Endpoint) bool {
	down := r.have.living[pr.key] == 0
	outage := down && r.s.OutageMode == On && len(endpoints) == 1
	e := Event{Group: pr.key.group, Family: pr.key.family}
	switch {
	case outage && !pr.outage && pr.reachable:
		pr.outage, e.Kind = true, EventOutage
		r.fx.events = append(r.fx.events, e)
	case pr.outage && !down:
		pr.outage, e.Kind = false, EventOutageOver
		r.fx.events = append(r.fx.events, e)
	}
	return outage
}

// chooseEndpointLocked takes the endpoint with the fewest writers that may be
// tried: the one that was just lost, or the next when that one rests. If none
// may, it says when one will; zero means that only an event can tell.
func (p *Pool) chooseEndpointLocked(r *refillRound, g *generation, pr *pair, endpoints []Endpoint, outage bool) (Endpoint, time.Time) {
	count := func(e Endpoint) int { return r.have.byEndpoint[endpointGen{pr.key, e.Addr, g.id}] }
	order := slices.Clone(endpoints)
	slices.SortStableFunc(order, func(a, b Endpoint) int { return cmp.Compare(count(a), count(b)) })
	var soonest time.Time
	for _, e := range order {
		c := pr.circuit(e.Addr)
		if c.mayTry(r.now, outage) {
			return e, time.Time{}
		}
		if at := c.nextTry(outage); at.After(r.now) && (soonest.IsZero() || at.Before(soonest)) {
			soonest = at
		}
	}
	return Endpoint{}, soonest
}

// launchLocked starts one connect.
func (p *Pool) launchLocked(t dialTask, fx *effects) {
	p.inv.dialing++
	t.pair.tries++
	t.pair.circuit(t.endpoint.Addr).trying++
	if t.victim == nil {
		t.pair.dialing[t.gen.id]++
	} else {
		t.pair.refresh++
	}
	fx.dials = append(fx.dials, t)
}

// connect runs one task. A connection that comes too late for its purpose is
// discarded; whoever waits for a writer never waits for this goroutine.
func (p *Pool) connect(t dialTask) {
	defer p.wg.Done()
	defer p.poke()
	s := p.settings()
	ctx, cancel := t.gen.withTimeout(s)
	defer cancel()
	start := time.Now()
	parts, err := p.dialEndpoint(ctx, t.pair.key, t.endpoint)
	if err != nil {
		p.connectFailed(t, err, time.Since(start))
		return
	}
	p.connected(t, parts, time.Since(start))
}

// dialEndpoint connects and shakes hands.
func (p *Pool) dialEndpoint(ctx context.Context, key pairKey, e Endpoint) (linkParts, error) {
	network := "tcp4"
	if key.family == IP6 {
		network = "tcp6"
	}
	raw, err := p.cfg.Dial(ctx, network, e.Addr)
	if err != nil {
		return linkParts{}, fmt.Errorf("connect to %s at %s: %w", key.group, e.Addr, err)
	}
	return p.hs.dial(ctx, raw, key.group)
}

// settleLocked takes the task off the books.
func (p *Pool) settleLocked(t dialTask) *circuit {
	p.inv.dialing--
	c := t.pair.circuit(t.endpoint.Addr)
	c.trying--
	if t.victim == nil {
		t.pair.dialing[t.gen.id]--
		if t.pair.dialing[t.gen.id] == 0 {
			delete(t.pair.dialing, t.gen.id)
		}
	} else {
		t.pair.refresh--
	}
	return c
}

func (p *Pool) connectFailed(t dialTask, err error, took time.Duration) {
	kind, outcome := EventConnectFailed, connectFailed
	if _, ok := refusalOf(err); ok {
		kind, outcome = EventRefused, connectRefused
	}
	var then []Event
	p.inv.Lock()
	c := p.settleLocked(t)
	if p.inv.ending || p.co.find(t.gen.id) == nil {
		outcome = connectCancelled
	} else {
		t.pair.failures++
		c.failed(time.Now(), p.settings(), p.wouldBeOutageLocked(t.pair, t.gen), p.jitter())
		if then = t.pair.group.rebuffedLocked(t.endpoint, time.Now().Add(-took), err); then != nil {
			p.publishLocked()
		}
	}
	p.inv.connects[outcome]++
	p.inv.Unlock()
	if t.victim != nil {
		p.replacementFailed(t, err.Error())
	}
	if outcome != connectCancelled {
		p.event(Event{
			Kind: kind, Group: t.pair.key.group, Family: t.pair.key.family, Endpoint: t.endpoint.Addr,
			Generation: t.gen.id, Reason: err.Error(), Took: took,
		})
	}
	for _, e := range then {
		p.event(e)
	}
}

// wouldBeOutageLocked is inOutageLocked for the pace of retries.
func (p *Pool) wouldBeOutageLocked(pr *pair, g *generation) bool {
	if p.settings().OutageMode == Off || len(g.endpoints(pr.key)) != 1 {
		return false
	}
	for _, w := range p.inv.writers {
		if w.pair() == pr.key && w.contour != contourDraining {
			return false
		}
	}
	return true
}

// connected makes the connection a writer, or discards it. The writer becomes
// visible to pool and registry under one guard.
func (p *Pool) connected(t dialTask, parts linkParts, took time.Duration) {
	p.inv.Lock()
	c := p.settleLocked(t)
	c.connected()
	t.pair.reachable = true
	gen := p.co.find(t.gen.id)
	if gen == nil || p.inv.ending || !gen.wants(t.pair.key, t.endpoint) || p.inv.pairs[t.pair.key] != t.pair {
		p.inv.connects[connectDiscarded]++
		p.inv.Unlock()
		p.discard(parts)
		if t.victim != nil {
			p.replacementFailed(t, "superseded")
		}
		return
	}
	p.inv.connects[connectOK]++
	w := p.newWriterLocked(t.pair, t.endpoint, gen.id, parts)
	var fx effects
	if t.victim != nil {
		p.finishReplacementLocked(t, w, &fx)
	} else {
		p.reg.publish(w)
	}
	p.publishLocked()
	p.inv.Unlock()
	e := w.describe(EventWriterUp)
	e.Took = took
	p.event(e)
	p.carryOut(&fx)
}

// newWriterLocked puts a writer into the inventory and sets its link going.
func (p *Pool) newWriterLocked(pr *pair, e Endpoint, gen uint64, parts linkParts) *writer {
	p.inv.lastWriter++
	w := &writer{
		id: p.inv.lastWriter, pool: p, group: pr.group, family: pr.key.family, endpoint: e, generation: gen, born: time.Now(),
	}
	w.link = newLink(parts, p.st, p.counts, p.policy.Load)
	w.link.out.roomAgain = w.group.changed.ring // for admissions that found the queue full
	w.refreshAt = p.refreshAfter(pr)
	p.inv.writers[w.id] = w
	pr.group.arriveLocked(e)
	pr.group.trips.sample(parts.roundTrip)
	p.wg.Add(1)
	w.link.start(w)
	return w
}

// discard closes a connection that never became a writer.
func (p *Pool) discard(parts linkParts) {
	p.counts.losses[lossDiscarded].Add(1)
	_ = parts.conn.SetDeadline(time.Now().Add(closeLinger))
	_ = parts.conn.Close()
}

// writerGone is called once by a writer whose link has ended, after its
// sessions were told.
func (p *Pool) writerGone(w *writer, f *linkFault, idle time.Duration) {
	defer p.wg.Done()
	defer p.poke()
	now := time.Now()
	s := p.settings()
	why := f.why
	lived := now.Sub(w.born)
	if why == lossPeerClosed && f.clean && idle > 0 && lived >= s.FlapWindow.Min {
		why = lossIdleClose
	}
	p.counts.losses[why].Add(1)
	p.inv.Lock()
	delete(p.inv.writers, w.id)
	pr := p.inv.pairs[w.pair()]
	var quarantined bool
	if pr != nil && w.contour != contourDraining && !p.inv.ending {
		quarantined = p.learnLocked(pr, w, why, lived, idle, now, s)
	}
	then := p.departLocked(w, f, now, s)
	p.publishLocked()
	p.inv.Unlock()
	kind := EventWriterLost
	if w.contour == contourDraining {
		kind = EventWriterRemoved
	}
	e := w.describe(kind)
	e.Reason, e.Took = why.String()+": "+f.detail, lived
	p.event(e)
	if quarantined {
		p.event(w.describe(EventQuarantined))
	}
	for _, e := range then {
		p.event(e)
	}
}

// leastIdleClose is the shortest idle time from which a peer's limit is learned:
// a shorter one is more likely the peer's end than its policy.
const leastIdleClose = 5 * time.Second

// learnLocked tells the endpoint's circuit what the loss means.
func (p *Pool) learnLocked(pr *pair, w *writer, why lossReason, lived, idle time.Duration, now time.Time, s *Settings) (quarantined bool) {
	c := pr.circuit(w.endpoint.Addr)
	if lived >= s.FlapWindow.Min {
		c.survived()
	}
	switch {
	case why == lossIdleClose:
		if idle >= leastIdleClose && (pr.idleClose == 0 || idle < pr.idleClose) {
			pr.idleClose = idle
		}
	case !why.failure():
	case lived < s.FlapWindow.Min:
		pr.losses++
		c.failed(now, s, len(w.pool.endpointsLocked(pr.key)) == 1 && s.OutageMode == On, p.jitter())
	case lived <= s.FlapWindow.Max:
		pr.losses++
		c.flapped(now, s)
		return s.Quarantine > 0
	default:
		pr.losses++
	}
	return false
}

func (p *Pool) endpointsLocked(key pairKey) []Endpoint {
	p.co.mu.Lock()
	defer p.co.mu.Unlock()
	if p.co.desired == nil {
		return nil
	}
	return p.co.desired.Groups[key.group][key.family]
}

// peerGoesAway: the node drains. A node that does so at once is no better than
// one that refuses: the circuit keeps the pace.
func (p *Pool) peerGoesAway(w *writer, why wire.Reason) {
	var fx effects
	now := time.Now()
	p.inv.Lock()
	if pr := p.inv.pairs[w.pair()]; pr != nil && w.contour != contourDraining {
		c := pr.circuit(w.endpoint.Addr)
		if now.Sub(w.born) >= p.settings().FlapWindow.Min {
			c.survived()
		}
		c.failed(now, p.settings(), false, p.jitter())
	}
	p.noteDrainLocked(w, now, "peer: "+why.String(), &fx)
	p.publishLocked()
	p.inv.Unlock()
	p.carryOut(&fx)
	p.poke()
}
