package pool

import (
	"context"
	"sync"
	"time"
)

// A sender that runs far ahead of its connection gains nothing: what it queues
// has left the processor's caches by the time it is encrypted, which costs a
// fifth of the throughput. So one whose session has more than paceHigh bytes
// queued waits until less than paceLow are left, but no longer than paceWait: on
// a connection that slow, caches do not matter, and buffering does.
const (
	paceHigh = 128 << 10
	paceLow  = 64 << 10
	paceWait = 5 * time.Millisecond
)

// pacer is what a session needs for that; made when first used, so that idle
// sessions stay small.
type pacer struct {
	mu      sync.Mutex // held while somebody waits; others go ahead
	timer   *time.Timer
	drained chan struct{} // capacity 1
}

// pace holds the sender back if its session is far ahead.
func (s *session) pace(ctx context.Context) {
	l := s.on()
	if l.out.bytes.Load() <= paceHigh || !s.pacer.mu.TryLock() {
		return
	}
	defer s.pacer.mu.Unlock()
	if s.pacer.drained == nil {
		s.pacer.drained = make(chan struct{}, 1)
		s.pacer.timer = time.NewTimer(paceWait)
	} else {
		s.pacer.timer.Reset(paceWait)
	}
	defer s.pacer.timer.Stop()
	if !l.out.watch(&s.lane, s.pacer.drained) {
		return
	}
	select {
	case <-s.pacer.drained:
	case <-s.pacer.timer.C:
	case <-s.done:
	case <-ctx.Done():
	}
}

// watch asks for a token in drained once the lane holds less than paceLow; false:
// it holds little already.
func (o *outbox) watch(l *lane, drained chan struct{}) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l.bytes <= paceHigh {
		return false
	}
	select { // a token of a wait that ended otherwise
	case <-drained:
	default:
	}
	l.drained = drained
	return true
}

// unwatchLocked hands the token out.
func (l *lane) unwatchLocked() {
	if l.drained != nil && l.bytes < paceLow {
		kick(l.drained)
		l.drained = nil
	}
}
