package pool

import (
	"fmt"
	"time"
)

// soonest is a timer's shortest wait. One of nothing is over before anybody waits
// for it, so that who waits runs it; where two do so at once, in fake time and under
// the race detector, the runtime crashes (Go 1.26).
const soonest = time.Nanosecond

// keep sends PINGs, and ends the link when the peer no longer answers.
func (l *link) keep() {
	defer l.wg.Done()
	timer := time.NewTimer(soonest)
	defer timer.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-timer.C:
		}
		now := time.Now()
		v, changed := l.judge(now)
		if v.missed > 0 {
			l.counts.pingsMissed.Add(uint64(v.missed))
		}
		if changed {
			l.owner.healthChanged()
		}
		if v.dead {
			l.fail(linkFault{why: lossSilent, detail: fmt.Sprintf("silent for %v", l.silence(now).Round(time.Millisecond))})
			return
		}
		if v.ping != 0 {
			l.out.ping(v.ping)
		}
		if !v.overdue.IsZero() {
			l.owner.overdue(v.overdue)
		}
		l.owner.tick(now)
		timer.Reset(max(soonest, v.next.Sub(now)))
	}
}

func (l *link) judge(now time.Time) (v verdict, healthChanged bool) {
	heard := l.born.Add(time.Duration(l.heard.Load()))
	doubtAfter := l.owner.doubtAfter()
	l.life.Lock()
	defer l.life.Unlock()
	l.life.hear(heard)
	l.life.doubtAfter = doubtAfter
	v = l.life.tick(now)
	return v, l.publishHealthLocked()
}

func (l *link) silence(now time.Time) time.Duration {
	return now.Sub(l.born.Add(time.Duration(l.heard.Load())))
}
