package admission

import (
	"cmp"
	"time"
)

// Limits bound the queues. Zero fields mean the defaults; each answers a threat.
type Limits struct {
	// Gateway names this gateway among those that share the nodes.
	Gateway string
	// Waiting is how many requests of one model may wait; default 256. A waiting
	// request holds its connection and its prompt, a few hundred kilobytes at
	// most, and a place so far behind would hardly be served in time.
	Waiting int
	// Patience is how long a request may wait for room; default 30 s. Proxies
	// and clients commonly give up after 60 s without a byte, and the first
	// token must still be computed.
	Patience time.Duration
	// Hold is how long a request that was passed often enough holds others up;
	// then they may pass again as before. Default: a third of Patience, so that
	// those it holds up are not all refused with it.
	Hold time.Duration
	// NotReady is how long a request may wait while no copy of its model is
	// usable; default 3 s: a death is noticed after 2.5 s at the latest, and
	// a copy that is not back by then is not about to be.
	NotReady time.Duration
	// Again is what a request keeps at least, over all further waits, when a node
	// that it was sent to had no room after all; default 3 s.
	Again time.Duration
	// Midway is how long an answer that had to give way may wait until it has more
	// tokens; default 5 min. Its client has been told a part of it and is kept
	// connected; those that go before it were there before, or are about to give way.
	Midway time.Duration
	// Tries is how many requests of one queue are priced each time something
	// changed; default 16. Room is the same for all; only smaller ones than
	// the last that failed are tried, so more would hardly find any.
	Tries int
	// Flows is how many keys are remembered for fairness although nothing of
	// theirs waits; default 1024. Keys may be many and come once each.
	Flows int
	// LeastRetry and MostRetry bound what refused clients are told; defaults
	// 1 s, the unit of the header, and 60 s, beyond which common clients
	// ignore it.
	LeastRetry, MostRetry time.Duration
}

func (l Limits) withDefaults() Limits {
	l.Waiting = or(l.Waiting, 256)
	l.Patience = or(l.Patience, 30*time.Second)
	l.Hold = or(l.Hold, l.Patience/3)
	l.NotReady = or(l.NotReady, 3*time.Second)
	l.Again = or(l.Again, 3*time.Second)
	l.Midway = or(l.Midway, 5*time.Minute)
	l.Tries = or(l.Tries, 16)
	l.Flows = or(l.Flows, 1024)
	l.LeastRetry = or(l.LeastRetry, time.Second)
	l.MostRetry = max(l.LeastRetry, or(l.MostRetry, time.Minute))
	return l
}

// or is a value that was set to something sensible, or the default.
func or[T cmp.Ordered](v, def T) T {
	var zero T
	if v > zero {
		return v
	}
	return def
}
