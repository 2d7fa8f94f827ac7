package pool

import (
	"cmp"
	"slices"
	"time"
)

// forceCause says why a draining writer was closed with sessions on it.
type forceCause int

const (
	forceDeadline  forceCause = iota // force_close, or drain_ttl when that is longer
	forceThreshold                   // more than drain_threshold were draining; it was the oldest
	forceCutover                     // the fallback mode changed: connections with sessions of the other mode
	forceStuck                       // the watchdog freed it
	forceCauses
)

var forceNames = [forceCauses]string{
	forceDeadline: "deadline", forceThreshold: "threshold", forceCutover: "cutover", forceStuck: "watchdog",
}

func (c forceCause) String() string { return forceNames[c] }

const (
	// closeBudget bounds how many draining writers one sweep closes.
	closeBudget = 16
	// stuckAfter is how long a writer that was told to end may take.
	stuckAfter = 5 * time.Second
)

// drainLocked is the sweep: it retires draining writers that are empty, ends
// those whose time is over, and is its own watchdog for what does not go.
func (p *Pool) drainLocked(now time.Time, s *Settings, fx *effects) {
	p.forgiveLocked(now, s)
	p.dropStaleLocked(now, fx)
	p.dropUnwantedLocked(now, fx)
	var busy []*writer // draining with sessions
	budget := closeBudget
	for _, w := range p.sortedLocked() {
		switch {
		case w.contour != contourDraining:
		case !w.retiring.IsZero():
			p.watchLocked(w, now, fx)
		case budget == 0:
		case w.sessions.Load() == 0 && w.link.out.empty():
			w.retiring = now
			fx.retire = append(fx.retire, w.link)
			budget--
		case now.Sub(w.drainStart) >= drainLimit(s):
			p.forceLocked(w, forceDeadline, now, fx)
			budget--
		default:
			busy = append(busy, w)
			p.warnLocked(w, now, s, fx)
		}
	}
	p.thinOutLocked(busy, now, s, budget, fx)
}

// forgiveLocked closes the circuits of endpoints whose writers live.
func (p *Pool) forgiveLocked(now time.Time, s *Settings) {
	for _, w := range p.inv.writers {
		if w.contour == contourDraining || now.Sub(w.born) < s.FlapWindow.Min {
			continue
		}
		if pr := p.inv.pairs[w.pair()]; pr != nil {
			pr.circuit(w.endpoint.Addr).survived()
		}
	}
}

// dropStaleLocked ends the service of stale writers whose time is over or whose
// pair is covered by fresh ones.
func (p *Pool) dropStaleLocked(now time.Time, fx *effects) {
	fresh := map[pairKey]int{}
	for _, w := range p.inv.writers {
		if w.contour == contourActive && !w.stale {
			fresh[w.pair()]++
		}
	}
	for _, w := range p.sortedLocked() {
		if !w.stale || w.contour == contourDraining {
			continue
		}
		pr := p.inv.pairs[w.pair()]
		switch {
		case !w.staleUntil.IsZero() && !now.Before(w.staleUntil):
			p.startDrainLocked(w, now, "bind_stale_ttl is over", fx)
		case pr == nil || fresh[w.pair()] >= max(1, pr.target):
			p.startDrainLocked(w, now, "covered by fresh writers", fx)
		}
	}
}

// dropUnwantedLocked drains writers that no living generation owns and nobody
// kept as stale: such as those of a dropped cycle. Where a group that is wanted has
// no others they serve until it has, since the machine behind them is well.
func (p *Pool) dropUnwantedLocked(now time.Time, fx *effects) {
	alive := map[uint64]bool{}
	for _, g := range p.co.alive() {
		alive[g.id] = true
	}
	served := map[*group]bool{}
	for _, w := range p.inv.writers {
		if w.contour != contourDraining && (alive[w.generation] || w.stale) {
			served[w.group] = true
		}
	}
	for _, w := range p.sortedLocked() {
		owned := w.stale || alive[w.generation]
		if w.contour != contourDraining && !owned && (served[w.group] || !p.stillWantedLocked(w)) {
			p.startDrainLocked(w, now, "generation is gone", fx)
		}
	}
}

// warnLocked says once that a drain takes longer than drain_ttl.
func (p *Pool) warnLocked(w *writer, now time.Time, s *Settings, fx *effects) {
	if w.drainTold || s.DrainTTL == 0 || now.Sub(w.drainStart) < s.DrainTTL.D() {
		return
	}
	w.drainTold = true
	e := w.describe(EventDrainSlow)
	e.N, e.Took = int(w.sessions.Load()), now.Sub(w.drainStart)
	fx.events = append(fx.events, e)
}

// thinOutLocked keeps the number of busy draining writers at the threshold:
// the oldest go.
func (p *Pool) thinOutLocked(busy []*writer, now time.Time, s *Settings, budget int, fx *effects) {
	if s.DrainThreshold == 0 {
		return
	}
	slices.SortStableFunc(busy, func(a, b *writer) int { return cmp.Compare(a.drainStart.UnixNano(), b.drainStart.UnixNano()) })
	for _, w := range busy[:max(0, min(len(busy)-s.DrainThreshold, budget))] {
		p.forceLocked(w, forceThreshold, now, fx)
	}
}

func (p *Pool) forceLocked(w *writer, cause forceCause, now time.Time, fx *effects) {
	w.retiring = now
	p.inv.forced[cause]++
	fx.hurt = append(fx.hurt, forceClose{w, cause})
	e := w.describe(EventForceClosed)
	e.Reason, e.N, e.Took = cause.String(), int(w.sessions.Load()), now.Sub(w.drainStart)
	fx.events = append(fx.events, e)
}

// watchLocked is the watchdog: a writer that was told to end and has not.
func (p *Pool) watchLocked(w *writer, now time.Time, fx *effects) {
	if now.Sub(w.retiring) >= stuckAfter {
		w.retiring = now
		p.inv.forced[forceStuck]++
		fx.kill = append(fx.kill, w.link)
	}
}

// forceClose ends a writer's sessions, telling both ends that they can be
// resumed elsewhere, and then the writer.
func (p *Pool) forceClose(f forceClose) {
	err := &CloseError{Code: CodeDraining, Detail: "forced: " + f.cause.String()}
	for _, s := range p.reg.sessionsOf(f.w) {
		s.closeFor(err, endForced)
	}
	f.w.link.retire()
}
