package pool

import "time"

// circuit remembers how an endpoint answered, and says when it may be tried
// again.
//
//	        failure                 reconnect_fast_tries failures
//	closed ---------> closed, short pause ----------------------> open
//	   ^                                                            | pause over
//	   |        a writer lived longer than flap_window.Min          v
//	   +------------------------------------------------------- half-open
//	                                                    (one try at a time)
//
// Quarantine lies beside it: an endpoint whose writers live just long enough
// to be counted on, and die, rests for a fixed time.
type circuit struct {
	failures    int // in a row
	retryAt     time.Time
	quarantined time.Time // until then
	trying      int       // connects under way
	outage      int       // failures in a row in outage mode
}

// fastPause is the pause between the first tries.
const fastPause = 100 * time.Millisecond

// mayTry says whether a connect may start now.
func (c *circuit) mayTry(now time.Time, ignoreQuarantine bool) bool {
	if now.Before(c.retryAt) || c.failures > 0 && c.trying > 0 {
		return false
	}
	return ignoreQuarantine || !now.Before(c.quarantined)
}

// nextTry is when mayTry can become true, as far as time decides it.
func (c *circuit) nextTry(ignoreQuarantine bool) time.Time {
	if ignoreQuarantine || c.retryAt.After(c.quarantined) {
		return c.retryAt
	}
	return c.quarantined
}

func (c *circuit) open(s *Settings) bool { return c.failures >= s.ReconnectFastTries }

// failed notes a failed connect, or a writer that died at birth. In outage mode
// the pauses stay short. jitter is in 0..1.
func (c *circuit) failed(now time.Time, s *Settings, outage bool, jitter float64) time.Duration {
	c.failures++
	var pause time.Duration
	switch {
	case outage:
		pause = doubled(s.OutageBackoff.Min, c.outage, s.OutageBackoff.Max)
		c.outage++
	case c.failures < s.ReconnectFastTries:
		pause = fastPause
	default:
		pause = doubled(s.ReconnectBase.D(), c.failures-s.ReconnectFastTries, s.ReconnectCap.D())
	}
	pause = spread(pause, jitter)
	c.retryAt = now.Add(pause)
	return pause
}

// connected notes a connect that succeeded. The failures are forgiven later,
// by survived: a peer that accepts and dies is no better than one that refuses.
func (c *circuit) connected() {
	c.retryAt = time.Time{}
}

// survived forgives the failures.
func (c *circuit) survived() { c.failures, c.outage = 0, 0 }

// flapped starts the quarantine.
func (c *circuit) flapped(now time.Time, s *Settings) {
	if s.Quarantine > 0 {
		c.quarantined = now.Add(s.Quarantine.D())
	}
}

// doubled is base x 2^n, at most limit.
func doubled(base time.Duration, n int, limit time.Duration) time.Duration {
	for ; n > 0 && base < limit; n-- {
		base *= 2
	}
	return min(base, limit)
}

// spread shortens a pause by up to a quarter, so that what failed together is
// not retried together. It never lengthens it: caps hold.
func spread(pause time.Duration, jitter float64) time.Duration {
	return pause - time.Duration(float64(pause/4)*jitter)
}
