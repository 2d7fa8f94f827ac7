package pool

import "time"

// roundTrip is RFC 6298's smoothed round trip and its mean deviation, and
// beside them the minimum that drifts upwards slowly, so that a path that
// became longer for good is taken as normal after some minutes.
type roundTrip struct {
	smoothed, deviation, lowest time.Duration
}

func (r *roundTrip) sample(took time.Duration) {
	if r.smoothed == 0 {
		r.smoothed, r.deviation, r.lowest = took, took/2, took
		return
	}
	off := took - r.smoothed
	r.smoothed += off / 8
	r.deviation += (max(off, -off) - r.deviation) / 4
	if took < r.lowest {
		r.lowest = took
	} else {
		r.lowest += (took - r.lowest) / 256
	}
}

// Health: quick to leave, slow to return. A writer is degraded by one missed
// PING, or while its average round trip is above twice its lowest. It is
// healthy again after recoverAfter answers in a row that show neither.
//
//	          miss, or average > 2 x lowest
//	healthy ------------------------------> degraded
//	        <------------------------------
//	          recoverAfter good answers
type healthState struct {
	degraded bool
	good     int // good answers in a row while degraded
}

const (
	recoverAfter = 4
	// slowMargin keeps microseconds of a local link from counting as a
	// doubling.
	slowMargin = 5 * time.Millisecond
)

func (h *healthState) miss() { h.degraded, h.good = true, 0 }

func (h *healthState) answered(r roundTrip) {
	switch {
	case r.smoothed > 2*r.lowest && r.smoothed > r.lowest+slowMargin:
		h.degraded, h.good = true, 0
	case h.degraded:
		if h.good++; h.good >= recoverAfter {
			h.degraded, h.good = false, 0
		}
	}
}
