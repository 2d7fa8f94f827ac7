package pool

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"time"
)

// absence begins when a group loses its last connection. A process that ends
// takes all of them along at once, but so does a router that is switched off and
// on: what tells the two apart is a new connect.
//
//	                 a connection stands
//	present <-------------------------------- absent
//	   |  the last connection is gone            |  every address refused one since, or
//	   +--------------------->-------------------+  the peer ended it and lost_after is over
//	                                             v
//	                                           lost    (told once)
//
// Connections that we closed ourselves say nothing of the peer: then only a
// refusal does. A peer that had been silent is lost at once.
type absence struct {
	began   time.Time
	until   time.Time       // lost then; zero: only refusals tell
	open    map[string]bool // addresses that carried connections and have refused none since
	knocked bool            // somebody dials, or has
	lost    bool
}

// arriveLocked notes that a group has a connection.
func (g *group) arriveLocked(e Endpoint) {
	g.absence = nil
	if g.carried == nil {
		g.carried = map[string]bool{}
	}
	g.carried[e.Addr] = true
}

// departLocked notes that a group's last connection is gone, and tells of it when
// that was not our doing.
func (p *Pool) departLocked(w *writer, f *linkFault, now time.Time, s *Settings) []Event {
	g := w.group
	if p.inv.ending || !g.wanted.Load() || p.hasWritersLocked(g) {
		return nil
	}
	g.absence = &absence{began: now, open: p.stillThereLocked(g)}
	g.carried = nil
	if f.why.ours() {
		return nil
	}
	events := []Event{{Kind: EventGroupDown, Group: g.name, Endpoint: w.endpoint.Addr, Reason: f.why.String() + ": " + f.detail}}
	patience := w.link.patience(s)
	g.patience.Store(int64(patience))
	if f.why == lossSilent || patience == 0 {
		return append(events, g.loseLocked(EventGroupSilent, f.why.String()))
	}
	g.absence.until = now.Add(patience)
	return events
}

// handshakeTrips is how many round trips a connect takes: TCP, TLS, hello, and one
// to spare.
const handshakeTrips = 4

// patience is how long a peer that ended this connection may take to answer a new
// connect.
func (l *link) patience(s *Settings) time.Duration {
	if s.LostAfter == 0 {
		return 0
	}
	return max(s.LostAfter.D(), min(handshakeTrips*time.Duration(l.rtt.Load()), s.ConnectTimeout.D()))
}

// stillThereLocked lists the addresses that carried connections of the group and
// that the map still has.
func (p *Pool) stillThereLocked(g *group) map[string]bool {
	open := map[string]bool{}
	for key, pr := range p.inv.pairs {
		if pr.group != g {
			continue
		}
		for _, e := range p.endpointsLocked(key) {
			if g.carried[e.Addr] {
				open[e.Addr] = true
			}
		}
	}
	return open
}

// loseLocked is the verdict.
func (g *group) loseLocked(kind EventKind, why string) Event {
	g.absence.lost = true
	return Event{Kind: kind, Group: g.name, Reason: why, Took: time.Since(g.absence.began)}
}

// rebuffedLocked takes a connect that failed as evidence, if it began since the
// last connection was lost. A connect that had no answer says nothing.
func (g *group) rebuffedLocked(e Endpoint, began time.Time, err error) []Event {
	a := g.absence
	if a == nil || a.lost || began.Before(a.began) || unanswered(err) || !a.open[e.Addr] {
		return nil
	}
	delete(a.open, e.Addr)
	if len(a.open) > 0 || !g.wanted.Load() {
		return nil
	}
	return []Event{g.loseLocked(EventGroupRefused, err.Error())}
}

// unanswered says that a connect ended without a word of the peer.
func unanswered(err error) bool {
	var slow net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.As(err, &slow) && slow.Timeout()
}

// searchLocked looks after groups without a connection: those that refill did not
// dial in this round, because no generation wants them yet or the endpoint rests,
// are knocked at once, and verdicts are given. It says when to look again: at next, or before.
func (p *Pool) searchLocked(now, next time.Time, fx *effects) time.Time {
	for _, name := range slices.Sorted(maps.Keys(p.inv.known)) {
		g := p.inv.known[name]
		a := g.absence
		if a == nil || a.lost || !g.wanted.Load() {
			continue
		}
		if !a.knocked {
			a.knocked = true
			p.knockLocked(g, fx)
		}
		if !a.until.IsZero() && !now.Before(a.until) {
			fx.events = append(fx.events, g.loseLocked(EventGroupSilent, "no connection could be made again"))
			continue
		}
		if !a.until.IsZero() {
			next = earlier(next, a.until)
		}
	}
	return next
}

func (p *Pool) knockLocked(g *group, fx *effects) {
	if slices.ContainsFunc(fx.dials, func(t dialTask) bool { return t.pair.group == g }) {
		return
	}
	for key, pr := range p.inv.pairs {
		if pr.group != g {
			continue
		}
		for _, e := range p.endpointsLocked(key) {
			if e.Kind == Dial && g.absence.open[e.Addr] {
				fx.knocks = append(fx.knocks, knockTask{g, key, e})
			}
		}
	}
}

// knockTask is one connect that only asks whether somebody is there.
type knockTask struct {
	group    *group
	key      pairKey
	endpoint Endpoint
}

func (p *Pool) knock(t knockTask) {
	defer p.wg.Done()
	defer p.poke()
	ctx, cancel := context.WithTimeout(p.ctx, p.settings().ConnectTimeout.D())
	defer cancel()
	began := time.Now()
	parts, err := p.dialEndpoint(ctx, t.key, t.endpoint)
	if err == nil {
		p.discard(parts)
	}
	p.inv.Lock()
	var events []Event
	switch a := t.group.absence; {
	case err != nil:
		events = t.group.rebuffedLocked(t.endpoint, began, err)
	case a != nil && !a.lost && !began.Before(a.began):
		a.until = time.Time{} // it is there, and will be dialled when somebody wants it
		if pr := p.inv.pairs[t.key]; pr != nil && p.settings().OutageMode == On {
			pr.circuit(t.endpoint.Addr).quarantined = time.Time{} // or it would rest without a connection
		}
	}
	p.publishLocked()
	p.inv.Unlock()
	for _, e := range events {
		p.event(e)
	}
}
