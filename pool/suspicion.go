package pool

import (
	"fmt"
	"time"
)

// A suspicion begins when somebody waits for a peer longer than usual: its owner
// says so (Suspect), or a PING on a connection with sessions is unanswered. Then
// the peer is asked at once, on all its connections; a machine that computes still
// answers, since a connection's reader waits for nobody.
//
//	          Suspect, an overdue PING
//	trusted ---------------------------> doubted
//	        <---------------------------    |  ping_misses rounds without a word of it
//	         any word of it, and a rest     v
//	                                     silent: its connections are closed
//
// A round lasts for the peer's allowance (trips), counted in ticks at which this
// process did run: while it stands still, or gets no processor, no time passes.
// And it lasts until somebody else was heard: when nobody is, it may be our own
// network that is gone. Then nobody is condemned; the ordinary PINGs decide.
type doubt struct { // under the pool's lock
	running bool
	again   bool // voiced once more since
}

// probeTick is how often a round looks.
const probeTick = 10 * time.Millisecond

// probeWitnesses is how many other peers are asked at most, when none of them says
// anything by itself.
const probeWitnesses = 3

// probeOutcome is how a suspicion ended. Each has a counter.
type probeOutcome int

const (
	probeAnswered probeOutcome = iota // the peer lives
	probeSilent                       // it was condemned
	probeUnsure                       // nobody else answered either, or there is nobody else
	probeMoot                         // its connections ended otherwise, or the pool did
	probeOutcomes
)

var probeNames = [probeOutcomes]string{
	probeAnswered: "answered", probeSilent: "silent", probeUnsure: "unsure", probeMoot: "moot",
}

func (o probeOutcome) String() string { return probeNames[o] }

// Suspect says that somebody waits longer than usual for a group. The pool finds
// out at once whether it is still there; if it is not, its connections end as those
// of any silent peer. It never blocks. There is one suspicion of a group at a time,
// and at most one in probe_timeout; unknown groups are ignored.
func (p *Pool) Suspect(group string) {
	if g := (*p.groups.Load())[group]; g != nil {
		p.suspect(g, time.Time{})
	}
}

// suspect starts a suspicion. asked is when the peer was asked in vain already;
// zero: it was not.
func (p *Pool) suspect(g *group, asked time.Time) {
	if p.settings().ProbeTimeout == 0 {
		return
	}
	p.inv.Lock()
	defer p.inv.Unlock()
	switch {
	case p.inv.ending:
	case g.doubt.running:
		g.doubt.again = true
	default:
		g.doubt.running = true
		p.wg.Add(1)
		go p.doubt(g, asked)
	}
}

// doubt is a suspicion's life, and that of those voiced meanwhile.
func (p *Pool) doubt(g *group, asked time.Time) {
	defer p.wg.Done()
	for {
		rest := time.NewTimer(p.settings().ProbeTimeout.D())
		p.counts.probes[p.probe(g, asked)].Add(1)
		select {
		case <-rest.C:
		case <-p.ctx.Done():
			rest.Stop()
		}
		if !p.doubtAgain(g) {
			return
		}
		asked = time.Time{}
	}
}

func (p *Pool) doubtAgain(g *group) bool {
	p.inv.Lock()
	defer p.inv.Unlock()
	again := g.doubt.again && !p.inv.ending
	g.doubt = doubt{running: again}
	return again
}

// probe asks until something is known.
func (p *Pool) probe(g *group, asked time.Time) probeOutcome {
	s := p.settings()
	since, rounds := time.Now(), s.PingMisses
	// A PING that was looked after late says nothing: we were not there ourselves.
	if overdue := since.Sub(asked) - g.trips.allowance(s.ProbeTimeout.D()); overdue < 2*probeTick {
		since, rounds = asked, max(1, rounds-1)
	}
	for range rounds {
		if got := p.round(g, since, s); got != probeSilent {
			return got
		}
	}
	return p.condemn(g, since)
}

// round asks once. Silent means that nothing came.
func (p *Pool) round(g *group, since time.Time, s *Settings) probeOutcome {
	asked := time.Now()
	for _, l := range p.linksOf(g) {
		l.ask()
	}
	enough := max(2, int((g.trips.allowance(s.ProbeTimeout.D())+probeTick-1)/probeTick))
	timer := time.NewTimer(probeTick)
	defer timer.Stop()
	for ticks := 1; ; ticks++ {
		select {
		case <-timer.C:
		case <-p.ctx.Done():
			return probeMoot
		}
		timer.Reset(probeTick)
		seen := p.sight(g, since, asked)
		switch {
		case !seen.stands:
			return probeMoot
		case seen.heard:
			return probeAnswered
		case !seen.company || !seen.witness && ticks >= 2*enough:
			return probeUnsure
		case seen.witness && ticks >= enough:
			return probeSilent
		case !seen.witness && ticks == enough/2:
			p.askOthers(g)
		}
	}
}

// sighting is who is there, and who was heard.
type sighting struct {
	stands  bool // the group has a connection
	heard   bool // a word of it since the suspicion
	company bool // other groups have connections
	witness bool // a word of one of them since the question
}

func (p *Pool) sight(g *group, since, asked time.Time) (s sighting) {
	p.inv.Lock()
	defer p.inv.Unlock()
	p.everyLinkLocked(func(of string, l *link) {
		if of == g.name {
			s.stands = true
			s.heard = s.heard || l.heardSince(since)
		} else {
			s.company = true
			s.witness = s.witness || l.heardSince(asked)
		}
	})
	return s
}

// everyLinkLocked visits all connections, pooled and direct.
func (p *Pool) everyLinkLocked(visit func(group string, l *link)) {
	for _, w := range p.inv.writers {
		visit(w.group.name, w.link)
	}
	for _, c := range p.direct.list() {
		visit(c.link.peer.Node, c.link)
	}
}

func (p *Pool) linksOf(g *group) (list []*link) {
	p.inv.Lock()
	defer p.inv.Unlock()
	p.everyLinkLocked(func(of string, l *link) {
		if of == g.name {
			list = append(list, l)
		}
	})
	return list
}

// askOthers sends one PING each to a few other groups.
func (p *Pool) askOthers(g *group) {
	p.inv.Lock()
	asked := map[string]bool{g.name: true}
	var list []*link
	p.everyLinkLocked(func(of string, l *link) { // maps have no order: these are others each time
		if !asked[of] && len(list) < probeWitnesses {
			asked[of] = true
			list = append(list, l)
		}
	})
	p.inv.Unlock()
	for _, l := range list {
		l.ask()
	}
}

// condemn closes the connections of a group that said nothing, unless it just did.
func (p *Pool) condemn(g *group, since time.Time) probeOutcome {
	var links []*link
	heard := false
	p.inv.Lock()
	p.everyLinkLocked(func(of string, l *link) {
		if of == g.name {
			links = append(links, l)
			heard = heard || l.heardSince(since)
		}
	})
	if !heard {
		for _, w := range p.inv.writers {
			if w.group == g {
				p.reg.refuse(w) // a session that loses one shall not try the next
			}
		}
	}
	p.inv.Unlock()
	if heard {
		return probeAnswered
	}
	now := time.Now()
	for _, l := range links {
		l.fail(linkFault{why: lossSilent, detail: fmt.Sprintf("silent for %v, and when asked", l.silence(now).Round(time.Millisecond))})
	}
	return probeSilent
}

// ask sends a PING at once, unless one waits for the socket.
func (l *link) ask() {
	l.life.Lock()
	token := l.life.ask(time.Now())
	l.life.Unlock()
	if token != 0 {
		l.out.ping(token)
	}
}

// heardSince says that bytes came, or the connection was made, not before then.
func (l *link) heardSince(then time.Time) bool {
	return !l.born.Add(time.Duration(l.heard.Load())).Before(then)
}

// doubtAfter is how long a PING may be unanswered while somebody uses the connection;
// 0: as long as liveness allows.
func (p *Pool) doubtAfter(g *group) time.Duration {
	floor := p.settings().ProbeTimeout.D()
	if floor == 0 {
		return 0
	}
	return g.trips.allowance(floor)
}
