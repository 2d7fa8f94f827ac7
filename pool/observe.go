package pool

import (
	"fmt"
	"strings"
	"time"
)

// Ready says whether the group can take sessions now. It takes no lock.
func (p *Pool) Ready(name string) Readiness {
	r := Readiness{Group: name, Direct: p.settings().Fallback == FallbackDirect}
	g := (*p.groups.Load())[name]
	if g == nil || p.closed.Load() {
		r.Missing = []string{"the desired map has no such group"}
		if p.closed.Load() {
			r.Missing = []string{"the pool is closed"}
		}
		return r
	}
	r.Known = true
	view := g.look()
	for _, f := range view.families {
		for _, c := range view.candidates {
			if c.w.family == f.Family && c.w.link.fault.Load() == nil {
				f.Living++
			}
		}
		f.Ready = f.Living > 0
		r.Families = append(r.Families, f)
		r.Ready = r.Ready || f.Ready
		if f.Living < f.Floor {
			r.Missing = append(r.Missing, fmt.Sprintf("%s: %d of %d writers", f.Family, f.Living, f.Floor))
		}
	}
	r.Ready = r.Ready || r.Direct
	return r
}

// whyNoWriter words what a failed Open found.
func (p *Pool) whyNoWriter(g *group) string {
	r := p.Ready(g.name)
	if r.Ready {
		return "every writer refused: queues full, or draining"
	}
	if len(r.Missing) == 0 {
		return "no endpoints"
	}
	return strings.Join(r.Missing, ", ")
}

// Snapshot is everything visible of the pool now.
func (p *Pool) Snapshot() Snapshot {
	now := time.Now()
	out := Snapshot{At: now, Closed: p.closed.Load(), Settings: *p.settings()}
	p.counts.export(&out)
	out.SessionsOpen = int(p.reg.open.Load())
	out.OpenFailures = byName(openFailureNames[:], func(i int) uint64 { return p.openFailures[i].Load() })
	out.DirectOpen = len(p.direct.list())
	p.inv.Lock()
	defer p.inv.Unlock()
	out.Replacements = byName(replacementOutcomeNames[:], func(i int) uint64 { return p.inv.replacements[i] })
	out.Connects = byName(connectNames[:], func(i int) uint64 { return p.inv.connects[i] })
	out.ForceCloses = byName(forceNames[:], func(i int) uint64 { return p.inv.forced[i] })
	p.snapshotGroupsLocked(&out, now)
	p.snapshotWritersLocked(&out, now)
	p.snapshotGenerationLocked(&out, now)
	return out
}

func (p *Pool) snapshotGroupsLocked(out *Snapshot, now time.Time) {
	for _, key := range sortedPairs(p.inv.pairs) {
		pr := p.inv.pairs[key]
		g := GroupSnapshot{
			Group: key.group, Family: key.family, Endpoints: len(p.endpointsLocked(key)),
			Contours: byName(contourNames[:], func(int) uint64 { return 0 }), Health: map[string]uint64{"healthy": 0, "degraded": 0},
			FloorTarget: pr.target, Demand: pr.demand, Tries: pr.tries, Failures: pr.failures, Losses: pr.losses,
			Outage: pr.outage,
		}
		for _, n := range pr.dialing {
			g.Dialing += n
		}
		for _, c := range pr.circuits {
			if now.Before(c.quarantined) {
				g.Quarantined++
			}
		}
		for _, w := range p.inv.writers {
			if w.pair() == key {
				p.snapshotMember(&g, w)
			}
		}
		out.Groups = append(out.Groups, g)
	}
}

func (p *Pool) snapshotMember(g *GroupSnapshot, w *writer) {
	g.Contours[w.contour.String()]++
	g.Health[w.health()]++
	g.Sessions += int(w.sessions.Load())
	if w.contour != contourDraining {
		g.FloorCurrent++
		g.Ready = g.Ready || w.link.fault.Load() == nil
	}
}

func (p *Pool) snapshotWritersLocked(out *Snapshot, now time.Time) {
	for _, w := range p.sortedLocked() {
		ws := WriterSnapshot{
			ID: w.id, Group: w.group.name, Family: w.family, Endpoint: w.endpoint.Addr, Generation: w.generation,
			Contour: w.contour.String(), Replacement: p.reg.replacementOf(w).String(), Health: w.health(),
			Age: now.Sub(w.born), Sessions: int(w.sessions.Load()), RoundTrip: time.Duration(w.link.rtt.Load()),
			QueueFrames: int(w.link.out.backlog.Load()), QueueBytes: int(w.link.out.bytes.Load()), Stale: w.stale,
		}
		if since := w.idleSince.Load(); since != 0 {
			ws.Idle = time.Duration(now.UnixNano() - since)
		}
		if w.contour == contourDraining {
			ws.DrainAge = now.Sub(w.drainStart)
		}
		out.Writers = append(out.Writers, ws)
		if !p.stillWantedLocked(w) {
			out.Generation.Orphans++
		}
	}
}

func (p *Pool) snapshotGenerationLocked(out *Snapshot, now time.Time) {
	s := p.settings()
	p.reg.mu.Lock()
	defer p.reg.mu.Unlock()
	p.co.mu.Lock()
	defer p.co.mu.Unlock()
	g := &out.Generation
	out.Commits = byName(outcomeNames[:], func(i int) uint64 { return p.co.counts[i] })
	delete(out.Commits, outcomeNone.String())
	if p.co.desired != nil {
		g.MapHash, g.MapRevision = p.co.desired.Hash, p.co.desired.Revision
	}
	if a := p.co.active; a != nil {
		g.Active, g.ActiveAge = a.id, now.Sub(a.activeAt)
		g.MapCurrent = a.hash == g.MapHash && a.revision == g.MapRevision
	}
	if n := len(p.co.pending); n > 0 {
		newest := p.co.pending[n-1]
		g.Pending, g.PendingAge = newest.id, now.Sub(newest.started)
		list := p.coverageLocked(newest, s)
		for _, c := range list {
			g.WriterDeficit += max(0, c.required-c.fresh)
		}
		_, missing := judgeCoverage(list, s)
		for _, key := range missing {
			g.Missing = append(g.Missing, key.group+"/"+string(key.family))
		}
	}
}
