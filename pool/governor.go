package pool

import (
	"cmp"
	"context"
	"slices"
	"time"

	"hecate/pool/wire"
)

// govern is the control loop: the only one that decides about floors, refill,
// generations, drains and replacements. It is level-triggered: whatever woke it,
// it compares what is with what should be. It never waits for a connection and
// is never waited for by a frame.
func (p *Pool) govern() {
	defer p.wg.Done()
	timer := time.NewTimer(soonest)
	defer timer.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.wake:
		case <-timer.C:
		}
		now := time.Now()
		next := p.reconcile(now)
		timer.Reset(max(soonest, next.Sub(now)))
	}
}

// sweepEvery is how often the governor looks even if nothing happened.
const sweepEvery = time.Second

// effects are what a reconciliation wants done outside the locks.
type effects struct {
	events []Event
	dials  []dialTask
	knocks []knockTask
	hurt   []forceClose // writers whose sessions must end
	retire []*link
	kill   []*link // did not end in time
	away   []*link // tell the peer that the connection drains
	want   []wantTask
	cut    []*session // of the mode that is not in force any more
}

type wantTask struct {
	link *link
	n    int
}

type forceClose struct {
	w     *writer
	cause forceCause
}

// reconcile runs one round and returns when the next is due at the latest.
func (p *Pool) reconcile(now time.Time) time.Time {
	s := p.settings()
	var fx effects
	next := now.Add(sweepEvery)
	p.inv.Lock()
	if p.inv.ending {
		p.inv.Unlock()
		return next
	}
	p.stepGenerationsLocked(now, s, &fx)
	p.promoteLocked()
	p.activateLocked(now, s, &fx)
	p.setFloorsLocked(now, s, &fx)
	p.drainLocked(now, s, &fx)
	p.cutoverLocked(now, s, &fx)
	p.giveUpHeirsLocked(now, &fx)
	p.refreshLocked(now, s, &fx)
	if at := p.refillLocked(now, s, &fx); !at.IsZero() {
		next = earlier(next, at)
	}
	next = p.searchLocked(now, next, &fx)
	p.tellReverseLocked(&fx)
	p.publishLocked()
	p.inv.Unlock()
	p.carryOut(&fx)
	if due := p.co.next(); !due.IsZero() && due.Before(next) {
		next = due
	}
	if !next.After(now) {
		next = now.Add(time.Millisecond)
	}
	return next
}

// carryOut does what must not happen under a lock.
func (p *Pool) carryOut(fx *effects) {
	for _, e := range fx.events {
		p.event(e)
	}
	for _, t := range fx.want { // before a connection is said to end, or the node restores it
		t.link.out.want(t.n)
	}
	for _, l := range fx.away {
		l.markDraining()
		l.out.goAway(wire.Reason{Code: CodeDraining, Text: "the gateway moves"})
	}
	for _, f := range fx.hurt {
		p.forceClose(f)
	}
	for _, c := range fx.cut {
		c.closeFor(&CloseError{Code: CodeDraining, Detail: "the fallback mode changed"}, endCutover)
	}
	for _, l := range fx.retire {
		l.retire()
	}
	for _, l := range fx.kill {
		l.fail(linkFault{why: lossForced, detail: "did not end in time"})
	}
	for _, t := range fx.dials {
		p.wg.Add(1)
		go p.connect(t)
	}
	for _, t := range fx.knocks {
		p.wg.Add(1)
		go p.knock(t)
	}
}

func (p *Pool) stepGenerationsLocked(now time.Time, s *Settings, fx *effects) {
	started, dropped := p.co.step(p.ctx, now, s)
	for _, g := range dropped {
		fx.events = append(fx.events, Event{Kind: EventGenerationDropped, Generation: g.id, Reason: g.last.String()})
	}
	if started != nil {
		fx.events = append(fx.events, Event{Kind: EventGenerationStarted, Generation: started.id, Reason: started.hash, N: len(started.groups)})
	}
}

// promoteLocked makes writers of the active generation first choice once they
// have answered a PING.
func (p *Pool) promoteLocked() {
	p.co.mu.Lock()
	active := p.co.active
	p.co.mu.Unlock()
	if active == nil {
		return
	}
	for _, w := range p.inv.writers {
		if w.contour == contourWarm && w.generation == active.id && w.measured.Load() {
			w.promote()
		}
	}
}

// activateLocked tries to make pending generations active.
func (p *Pool) activateLocked(now time.Time, s *Settings, fx *effects) {
	for _, g := range p.co.alive() {
		if !g.activeAt.IsZero() {
			continue
		}
		before := g.last
		got, missing := p.tryActivateLocked(g, now, s, fx)
		switch {
		case got == outcomeActivated:
			e := Event{Kind: EventGenerationActive, Generation: g.id, Reason: g.hash, N: len(missing), Took: now.Sub(g.started)}
			fx.events = append(fx.events, e)
		case got != before && got != outcomeNone:
			fx.events = append(fx.events, Event{Kind: EventGenerationRefused, Generation: g.id, Reason: got.String(), N: len(missing)})
		}
	}
}

// tryActivateLocked is the atomic step: all three locks are held while coverage
// is judged, the coordinator re-checks, and writers change their roles.
func (p *Pool) tryActivateLocked(g *generation, now time.Time, s *Settings, fx *effects) (outcome, []pairKey) {
	p.reg.mu.Lock()
	defer p.reg.mu.Unlock()
	p.co.mu.Lock()
	defer p.co.mu.Unlock()
	judged, missing := judgeCoverage(p.coverageLocked(g, s), s)
	got := p.co.activateLocked(g, judged, now)
	if got == outcomeActivated {
		p.swapLocked(g, missing, now, s, fx)
	}
	return got, missing
}

// coverageLocked counts a generation's living writers against its map.
func (p *Pool) coverageLocked(g *generation, s *Settings) []coverage {
	fresh := map[pairKey]int{}
	for _, w := range p.inv.writers {
		if w.generation == g.id && w.contour != contourDraining && w.seat.published && !w.seat.refusing {
			fresh[w.pair()]++
		}
	}
	var list []coverage
	for name, families := range g.groups {
		for family, endpoints := range families {
			key := pairKey{name, family}
			c := coverage{key: key, required: staticRequirement(len(endpoints), s), fresh: fresh[key]}
			if pr := p.inv.pairs[key]; pr != nil {
				c.reachable = pr.reachable
			}
			if c.required > 0 {
				list = append(list, c)
			}
		}
	}
	slices.SortFunc(list, func(a, b coverage) int { return a.key.compare(b.key) })
	return list
}

// swapLocked gives every writer its role under the new active generation, with
// the registry's lock held.
func (p *Pool) swapLocked(g *generation, missing []pairKey, now time.Time, s *Settings, fx *effects) {
	for _, w := range p.sortedLocked() {
		switch {
		case w.contour == contourDraining:
		case w.generation == g.id:
			w.promote()
		case w.generation > g.id: // of a cycle that still warms up
		case s.BindStale != BindStaleNever && slices.Contains(missing, w.pair()) && g.wants(w.pair(), w.endpoint):
			w.stale, w.staleUntil = true, time.Time{}
			if s.BindStale == BindStaleTTL {
				w.staleUntil = now.Add(s.BindStaleTTL.D())
			}
		default:
			w.seat.refusing = true
			p.noteDrainLocked(w, now, "generation retired", fx)
		}
	}
}

// startDrainLocked closes the writer to binds and starts its clock.
func (p *Pool) startDrainLocked(w *writer, now time.Time, why string, fx *effects) {
	p.reg.refuse(w)
	p.noteDrainLocked(w, now, why, fx)
}

func (p *Pool) noteDrainLocked(w *writer, now time.Time, why string, fx *effects) {
	if !w.drain(now, why) {
		return
	}
	e := w.describe(EventWriterDraining)
	e.Reason, e.N = why, int(w.sessions.Load())
	fx.events = append(fx.events, e)
	fx.away = append(fx.away, w.link)
}

// sortedLocked lists the writers by age, so that decisions repeat.
func (p *Pool) sortedLocked() []*writer {
	list := make([]*writer, 0, len(p.inv.writers))
	for _, w := range p.inv.writers {
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b *writer) int { return cmp.Compare(a.id, b.id) })
	return list
}

// publishLocked gives the hot path its lists.
func (p *Pool) publishLocked() {
	p.co.mu.Lock()
	active := uint64(0)
	if p.co.active != nil {
		active = p.co.active.id
	}
	p.co.mu.Unlock()
	lists := make(map[*group][]candidate, len(p.inv.known))
	for _, w := range p.sortedLocked() {
		if w.contour != contourDraining && p.stillWantedLocked(w) {
			c := candidate{w: w, contour: w.contour, stale: w.stale || w.generation < active}
			lists[w.group] = append(lists[w.group], c)
		}
	}
	families := p.familiesLocked()
	for name, g := range p.inv.known {
		g.publish(groupView{candidates: lists[g], families: families[g], lost: g.absence != nil && g.absence.lost})
		if len(lists[g]) == 0 && !g.wanted.Load() && !p.hasWritersLocked(g) {
			delete(p.inv.known, name)
		}
	}
}

// familiesLocked is what there should be, per group, ip4 first.
func (p *Pool) familiesLocked() map[*group][]FamilyReadiness {
	out := make(map[*group][]FamilyReadiness, len(p.inv.known))
	for _, key := range sortedPairs(p.inv.pairs) {
		pr := p.inv.pairs[key]
		f := FamilyReadiness{Family: key.family, Floor: pr.target, Endpoints: len(p.endpointsLocked(key))}
		out[pr.group] = append(out[pr.group], f)
	}
	return out
}

func (p *Pool) hasWritersLocked(g *group) bool {
	for _, w := range p.inv.writers {
		if w.group == g {
			return true
		}
	}
	return false
}

// stillWantedLocked says that the desired map has the writer's endpoint.
func (p *Pool) stillWantedLocked(w *writer) bool {
	p.co.mu.Lock()
	defer p.co.mu.Unlock()
	return p.co.desired != nil && slices.Contains(p.co.desired.Groups[w.group.name][w.family], w.endpoint)
}

// setFloorsLocked computes what refill aims for in the active generation.
func (p *Pool) setFloorsLocked(now time.Time, s *Settings, fx *effects) {
	keys := sortedPairs(p.inv.pairs)
	claims := make([]floorClaim, len(keys))
	for i, key := range keys {
		pr := p.inv.pairs[key]
		claims[i] = p.claimLocked(pr, now, s)
	}
	fitFloors(claims, writerCap(s, p.cfg.Cores))
	for i, key := range keys {
		pr := p.inv.pairs[key]
		if pr.target != claims[i].target {
			fx.events = append(fx.events, Event{Kind: EventFloorChanged, Group: key.group, Family: key.family, N: claims[i].target})
			pr.target = claims[i].target
		}
		pr.group.lean.Store(pr.target < pr.floor)
	}
}

func (p *Pool) claimLocked(pr *pair, now time.Time, s *Settings) floorClaim {
	g := pr.group
	sessions := int(g.sessions.Load())
	if last := g.lastUse.Load(); last != 0 {
		g.used, g.lastBusy = true, time.Unix(0, last)
	}
	if sessions > 0 {
		g.lastBusy = now
	}
	p.co.mu.Lock()
	endpoints := len(p.co.desired.Groups[pr.key.group][pr.key.family])
	p.co.mu.Unlock()
	pr.floor = staticRequirement(endpoints, s)
	idle := now.Sub(g.lastBusy)
	target := wantsFloor(floorInput{endpoints: endpoints, sessions: sessions, idle: idle, used: g.used}, s)
	return floorClaim{target: target, lowest: lowestFloor(pr.floor, s), sessions: sessions, idle: idle}
}

func sortedPairs(pairs map[pairKey]*pair) []pairKey {
	keys := make([]pairKey, 0, len(pairs))
	for k := range pairs {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, pairKey.compare)
	return keys
}

// withGeneration derives the context of a connect made for a generation.
func (g *generation) withTimeout(s *Settings) (context.Context, context.CancelFunc) {
	return context.WithTimeout(g.ctx, s.ConnectTimeout.D())
}
