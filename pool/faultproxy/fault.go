package faultproxy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// chunk is the largest piece in bytes that is read and forwarded at once.
	chunk = 16 << 10

	// queued bounds the chunks of one direction that wait for their time: 4 MiB, enough for
	// 200 ms at 160 Mbit/s. Then the proxy stops reading, as a full line would.
	queued = 256

	// throttledQueue is how much a throttled direction holds, as time: a line with
	// the buffers of a common router, not with megabytes that a PING would wait behind.
	throttledQueue = 125 * time.Millisecond

	// kernelBuffer keeps the receive buffers of the proxy's sockets small in bytes, for the
	// same reason.
	kernelBuffer = 64 << 10

	// packet, minRetransmit and maxRetransmits imitate what the loss of a packet
	// costs a TCP connection.
	packet         = 1460
	minRetransmit  = 200 * time.Millisecond
	maxRetransmits = 10

	// throttleStep is the time that one piece of throttled data stands for.
	throttleStep = 20 * time.Millisecond

	// acceptPause keeps a listener that cannot accept from spinning.
	acceptPause = 50 * time.Millisecond

	// dialTimeout bounds connecting to the target.
	dialTimeout = 10 * time.Second
)

// Direction is what happens to bytes that go one way. The zero value passes them
// on at once.
type Direction struct {
	Delay          time.Duration // added to each byte
	Jitter         time.Duration // added to Delay, evenly spread over 0..Jitter; order is kept
	Loss           float64       // probability that a packet of 1460 bytes is late by a retransmission, 0..1
	BytesPerSecond int           // 0 = unlimited; per connection
	Silent         bool          // nothing passes
}

// Validate reports values out of range.
func (d Direction) Validate() error {
	var faults []error
	if d.Delay < 0 || d.Jitter < 0 {
		faults = append(faults, fmt.Errorf("delay %v and jitter %v: need 0 or more", d.Delay, d.Jitter))
	}
	if !(d.Loss >= 0 && d.Loss <= 1) {
		faults = append(faults, fmt.Errorf("loss %v: need 0 to 1", d.Loss))
	}
	if d.BytesPerSecond < 0 {
		faults = append(faults, fmt.Errorf("throttle %d: need 0 or more bytes per second", d.BytesPerSecond))
	}
	return errors.Join(faults...)
}

// Fault is what a proxy does to its connections. The zero value is an honest proxy.
type Fault struct {
	Up   Direction // from the side that connected to the target
	Down Direction // back
}

// lateness draws how long n bytes are under way.
func (d Direction) lateness(n int, rng *rand.Rand) time.Duration {
	var worst time.Duration
	if d.Loss > 0 {
		for ; n > 0; n -= packet {
			var late time.Duration
			timeout := minRetransmit + 2*d.Delay
			for try := 0; try < maxRetransmits && rng.Float64() < d.Loss; try++ {
				late += timeout
				timeout *= 2
			}
			worst = max(worst, late)
		}
	}
	if d.Jitter > 0 {
		worst += time.Duration(rng.Int64N(int64(d.Jitter) + 1))
	}
	return d.Delay + worst
}
