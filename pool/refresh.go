package pool

import "time"

// replacementOutcome is how a replacement ended. Each has a counter.
type replacementOutcome int

const (
	replacementStarted    replacementOutcome = iota
	replacementCommitted                     // the successor serves
	replacementAborted                       // no successor; the victim is open again
	replacementVictimGone                    // the victim was lost or drained meanwhile; the successor serves
	replacementShrunk                        // idle above the floor: drained without successor
	replacementOutcomes
)

var replacementOutcomeNames = [replacementOutcomes]string{
	replacementStarted: "started", replacementCommitted: "committed", replacementAborted: "aborted",
	replacementVictimGone: "victim_gone", replacementShrunk: "shrunk",
}

func (o replacementOutcome) String() string { return replacementOutcomeNames[o] }

// refreshLocked replaces writers that were idle for so long that the peer may
// close them, and those that Rotate marked: the successor is connected first,
// one at a time per pair, also below the floor. Above the floor an idle writer
// goes without one: that is how a lowered floor takes effect without closing
// anything in use.
func (p *Pool) refreshLocked(now time.Time, s *Settings, fx *effects) {
	p.co.mu.Lock()
	active := p.co.active
	p.co.mu.Unlock()
	if active == nil {
		return
	}
	have := p.censusLocked()
	for _, w := range p.sortedLocked() {
		pr := p.inv.pairs[w.pair()]
		if pr == nil || w.generation != active.id || w.contour == contourDraining || !p.dueForRefresh(w, pr, now, s) {
			continue
		}
		slot := pairGen{w.pair(), w.generation}
		if !w.rotate && have.byPair[slot] > pr.target && pr.refresh == 0 {
			have.byPair[slot]--
			p.inv.replacements[replacementShrunk]++
			p.startDrainLocked(w, now, "idle above the floor", fx)
			continue
		}
		p.replaceLocked(active, pr, w, now, s, fx)
	}
}

// dueForRefresh: idle for longer than its own, slightly random, share of
// idle_refresh, or of the time after which this peer was seen to close.
func (p *Pool) dueForRefresh(w *writer, pr *pair, now time.Time, s *Settings) bool {
	if w.rotate {
		return true
	}
	since := w.idleSince.Load()
	if s.IdleRefresh == 0 || since == 0 {
		return false
	}
	return time.Duration(now.UnixNano()-since) >= min(w.refreshAt, s.IdleRefresh.D())
}

// refreshAfter draws when a new writer counts as idle for too long: at most a
// tenth before idle_refresh, so that writers born together are not replaced
// together, and in time before the peer's own limit as far as that is known.
func (p *Pool) refreshAfter(pr *pair) time.Duration {
	limit := p.settings().IdleRefresh.D()
	if pr.idleClose > 0 {
		limit = min(limit, pr.idleClose*8/10)
	}
	return limit - time.Duration(float64(limit/10)*p.jitter())
}

// replaceLocked reserves the victim and starts to connect its successor.
func (p *Pool) replaceLocked(g *generation, pr *pair, victim *writer, now time.Time, s *Settings, fx *effects) {
	c := pr.circuit(victim.endpoint.Addr)
	if victim.endpoint.Kind == Reverse {
		if pr.awaited.victim == nil && p.reg.prepare(victim) {
			pr.awaited = heir{victim, now.Add(heirTime)}
			p.inv.replacements[replacementStarted]++
			fx.events = append(fx.events, victim.describe(EventReplacementStarted))
		}
		return
	}
	if pr.refresh > 0 || p.inv.dialing >= s.ReconnectParallel || !c.mayTry(now, false) || !p.reg.prepare(victim) {
		return
	}
	p.inv.replacements[replacementStarted]++
	fx.events = append(fx.events, victim.describe(EventReplacementStarted))
	p.launchLocked(dialTask{gen: g, pair: pr, endpoint: victim.endpoint, victim: victim}, fx)
}

// heirTime is how long a node may take to bring a successor: more than its longest
// pause between two tries.
const heirTime = maxReversePause + 5*time.Second

// giveUpHeirsLocked ends replacements whose victim went another way, and those whose
// successor does not come; then nothing has changed.
func (p *Pool) giveUpHeirsLocked(now time.Time, fx *effects) {
	for _, key := range sortedPairs(p.inv.pairs) {
		pr := p.inv.pairs[key]
		victim := pr.awaited.victim
		switch {
		case victim == nil:
		case p.inv.writers[victim.id] != victim || victim.contour == contourDraining:
			p.inv.replacements[replacementVictimGone]++
			pr.awaited = heir{}
		case now.After(pr.awaited.until):
			p.reg.abort(victim)
			p.inv.replacements[replacementAborted]++
			e := victim.describe(EventReplacementFailed)
			e.Reason = "the node does not connect"
			fx.events = append(fx.events, e)
			pr.awaited = heir{}
		}
	}
}

// finishReplacementLocked is the commit: under the guard of writers and
// registry the victim is checked once more, the successor published and the
// victim closed to binds.
func (p *Pool) finishReplacementLocked(t dialTask, successor *writer, fx *effects) {
	now := time.Now()
	if p.inv.writers[t.victim.id] == t.victim && t.victim.contour != contourDraining && p.reg.commit(t.victim, successor) {
		p.inv.replacements[replacementCommitted]++
		if t.victim.contour == contourActive {
			successor.promote()
		}
		p.noteDrainLocked(t.victim, now, "replaced", fx)
		e := successor.describe(EventReplacementDone)
		e.N = int(t.victim.id)
		fx.events = append(fx.events, e)
		return
	}
	// The victim went another way. Its successor is a good writer all the same,
	// and the place it was meant for is empty.
	p.inv.replacements[replacementVictimGone]++
	p.reg.publish(successor)
}

// replacementFailed opens the victim again; nothing else has changed.
func (p *Pool) replacementFailed(t dialTask, why string) {
	p.reg.abort(t.victim)
	p.inv.Lock()
	p.inv.replacements[replacementAborted]++
	p.inv.Unlock()
	e := t.victim.describe(EventReplacementFailed)
	e.Reason = why
	p.event(e)
}

// Rotate replaces every writer, one after the other, by a successor: after the
// certificates behind Config.TLS changed. Sessions stay where they are and have
// the drain's time to end or move.
func (p *Pool) Rotate() {
	p.inv.Lock()
	for _, w := range p.inv.writers {
		w.rotate = true
	}
	p.inv.Unlock()
	p.poke()
}
