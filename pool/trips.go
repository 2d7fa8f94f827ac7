package pool

import (
	"sync"
	"time"
)

// trips is what round trips to a peer were like, over all its connections and
// those before them: the average and deviation of RFC 6298, and beside them the
// longest, which fades within some minutes. A machine that is busy now and then
// has an average of microseconds and a longest of half a second.
type trips struct {
	mu   sync.Mutex
	rtt  roundTrip
	peak time.Duration
}

// peakShare is how much of the distance to a shorter round trip the peak falls: by
// half in 350 round trips, a minute of a group with three connections. A PING may
// take peakFactor of it: on a machine with a load of 30 on two cores, one of 600
// took three times what the longest had taken lately.
const (
	peakShare  = 512
	peakFactor = 3
)

func (t *trips) sample(took time.Duration) {
	if took <= 0 {
		return // not measured
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rtt.sample(took)
	if took > t.peak {
		t.peak = took
	} else {
		t.peak -= (t.peak - took) / peakShare
	}
}

// allowance is how long a PING may take before the peer's silence means
// something: at least floor, as long as a retransmission timer would wait, and
// several times what one took a while ago; never longer than an ordinary PING may
// take.
func (t *trips) allowance(floor time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return min(max(floor, t.rtt.smoothed+4*t.rtt.deviation, peakFactor*t.peak), maxPingTimeout)
}
