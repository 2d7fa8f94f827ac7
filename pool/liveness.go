package pool

import "time"

// liveness judges one connection by its PINGs. It is a value without clock or
// socket: the connection tells it what happened and when, and asks what to do.
// Any inbound frame counts as life.
type liveness struct {
	interval, timeout time.Duration
	misses            int

	nextPing time.Time
	token    uint64 // of the newest PING
	extra    uint64 // of the newest that was asked for
	unsent   bool   // the newest PING waits for the socket
	queued   time.Time
	flying   []flight // sent, unanswered, oldest first; at most maxFlying
	missed   int      // in a row, with nothing heard in between
	heard    time.Time

	doubtAfter time.Duration // a PING unanswered for so long is overdue; 0: never
	doubted    uint64        // the newest PING when one was overdue

	rtt    roundTrip
	health healthState
}

type flight struct {
	token uint64
	sent  time.Time
	extra bool // out of turn: it cannot be missed
}

// maxFlying bounds the unanswered PINGs that are remembered.
const maxFlying = 16

// verdict is what liveness wants to be done.
type verdict struct {
	ping    uint64    // send a PING with this token; 0: none
	missed  int       // PINGs newly given up
	dead    bool      // close the connection
	overdue time.Time // when the PING was sent that is newly overdue; zero: none
	next    time.Time // ask again then at the latest
}

// newLiveness starts with the round trip that the handshake took, 0 if unknown.
func newLiveness(s *Settings, now time.Time, handshake time.Duration) *liveness {
	l := &liveness{heard: now, nextPing: now}
	l.configure(s)
	if handshake > 0 {
		l.rtt.sample(handshake)
	}
	return l
}

func (l *liveness) configure(s *Settings) {
	l.interval, l.timeout, l.misses = s.PingInterval.D(), s.PingTimeout.D(), s.PingMisses
}

// allowance is how long one PING may take, counted from the socket write.
func (l *liveness) allowance() time.Duration {
	return min(max(l.timeout, l.rtt.smoothed+4*l.rtt.deviation), maxPingTimeout)
}

// patience is how long the peer may be silent before ping_misses unanswered
// PINGs are believed. On a LAN the misses decide alone. On a long path a packet
// that is lost, and lost once more, looks just like the end, so what the 2.5 s
// bound allows is used up.
func (l *liveness) patience() time.Duration {
	misses := time.Duration(l.misses)
	longest := max(maxSilence, l.interval+misses*l.timeout)
	return min(l.interval/2+misses*l.allowance()+8*l.rtt.smoothed, longest)
}

// hear notes the time of the newest inbound frame.
func (l *liveness) hear(at time.Time) {
	if at.After(l.heard) {
		l.heard = at
		l.missed = 0
	}
}

// written notes that the PING left for the socket.
func (l *liveness) written(token uint64, at time.Time) {
	if token != l.token || !l.unsent {
		return
	}
	l.unsent = false
	if len(l.flying) == maxFlying {
		l.flying = append(l.flying[:0], l.flying[1:]...)
	}
	l.flying = append(l.flying, flight{token, at, token == l.extra})
}

// pong notes an answer, and reports the round trip it measured.
func (l *liveness) pong(token uint64, at time.Time) (time.Duration, bool) {
	for i, f := range l.flying {
		if f.token == token {
			l.flying = append(l.flying[:0], l.flying[i+1:]...)
			took := at.Sub(f.sent)
			l.rtt.sample(took)
			l.health.answered(l.rtt)
			return took, true
		}
	}
	return 0, false
}

// tick is asked at verdict.next, or earlier.
func (l *liveness) tick(now time.Time) (v verdict) {
	v.overdue = l.overdue(now)
	v.missed = l.giveUp(now)
	silence := now.Sub(l.heard)
	v.dead = silence >= l.patience() && (l.missed >= l.misses || l.unsent && now.Sub(l.queued) >= l.allowance())
	if !now.Before(l.nextPing) && (!l.unsent || l.extra == l.token) {
		l.nextPing = now.Add(l.interval)
		v.ping = l.ping(now)
		l.extra = 0 // one that waits for the socket is now the one that is due
	}
	v.next = l.wake(now)
	return v
}

// ask makes a PING out of turn, for a suspicion that counts by itself.
func (l *liveness) ask(now time.Time) (token uint64) {
	if token = l.ping(now); token != 0 {
		l.extra = token
	}
	return token
}

// ping makes a PING; 0: one waits for the socket already.
func (l *liveness) ping(now time.Time) (token uint64) {
	if l.unsent {
		return 0
	}
	l.token++
	l.unsent, l.queued = true, now
	return l.token
}

// overdue is when the oldest PING was sent, if it is newly overdue and nothing was
// heard since.
func (l *liveness) overdue(now time.Time) time.Time {
	if l.doubtAfter == 0 || len(l.flying) == 0 {
		return time.Time{}
	}
	f := l.flying[0]
	if f.token <= l.doubted || !l.heard.Before(f.sent) || now.Sub(f.sent) < l.doubtAfter {
		return time.Time{}
	}
	l.doubted = l.token
	return f.sent
}

// giveUp counts PINGs whose time is over and that nothing was heard after.
func (l *liveness) giveUp(now time.Time) (missed int) {
	limit := l.allowance()
	for len(l.flying) > 0 && now.Sub(l.flying[0].sent) >= limit {
		if l.heard.Before(l.flying[0].sent) && !l.flying[0].extra {
			missed++
		}
		l.flying = append(l.flying[:0], l.flying[1:]...)
	}
	if missed > 0 {
		l.missed += missed
		l.health.miss()
	}
	return missed
}

// wake is the next moment at which something can change.
func (l *liveness) wake(now time.Time) time.Time {
	next := l.nextPing
	if l.unsent {
		next = l.queued.Add(max(l.interval, l.allowance()))
	}
	if len(l.flying) > 0 {
		next = earlier(next, l.flying[0].sent.Add(l.allowance()))
	}
	if l.doubtAfter > 0 {
		next = earlier(next, l.doubtAt(now, next))
	}
	if l.missed >= l.misses || l.unsent {
		next = earlier(next, l.heard.Add(l.patience()))
	}
	if !next.After(now) {
		return now.Add(l.interval / 8) // overdue and undecided: look again soon, never spin
	}
	return next
}

// doubtAt is when a PING becomes overdue, if that is to come; otherwise next.
func (l *liveness) doubtAt(now, next time.Time) time.Time {
	at := now
	switch {
	case len(l.flying) > 0 && l.flying[0].token > l.doubted:
		at = l.flying[0].sent.Add(l.doubtAfter)
	case l.unsent && len(l.flying) == 0:
		at = l.queued.Add(l.doubtAfter)
	}
	if at.After(now) {
		return at
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
