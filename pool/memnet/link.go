package memnet

import (
	"math/rand/v2"
	"time"
)

const (
	// DefaultBuffer is the size in bytes of a connection's buffer in each
	// direction, about what kernels start with.
	DefaultBuffer = 256 << 10

	// packet is the number of payload bytes that are lost or arrive together.
	packet = 1460

	// minRetransmit is the least time in which a lost packet is sent again, as
	// Linux has it.
	minRetransmit = 200 * time.Millisecond

	// maxRetransmits bounds how often in a row one packet is lost, so that a loss
	// of 1 is lateness of some minutes and not an endless loop.
	maxRetransmits = 10
)

// Link describes one direction between two hosts. The zero value is a perfect
// network.
type Link struct {
	Delay     time.Duration // one way
	Jitter    time.Duration // added to Delay, evenly spread over 0..Jitter; order is kept
	Loss      float64       // probability that a packet of 1460 bytes is lost, 0..1
	Bandwidth int           // bytes per second, shared by all connections of the pair; 0 = unlimited
	Buffer    int           // bytes in flight and unread per connection; 0 = DefaultBuffer
}

func (l Link) buffer() int {
	if l.Buffer <= 0 {
		return DefaultBuffer
	}
	return l.Buffer
}

// lateness draws how much later than a lossless packet the last of n bytes arrives.
func (l Link) lateness(n int, rng *rand.Rand) time.Duration {
	var worst time.Duration
	if l.Loss > 0 {
		for ; n > 0; n -= packet {
			var late time.Duration
			timeout := minRetransmit + 2*l.Delay
			for try := 0; try < maxRetransmits && rng.Float64() < l.Loss; try++ {
				late += timeout
				timeout *= 2
			}
			worst = max(worst, late)
		}
	}
	if l.Jitter > 0 {
		worst += time.Duration(rng.Int64N(int64(l.Jitter) + 1))
	}
	return worst
}

// pair is a direction between two hosts; an empty name stands for every host.
type pair struct{ from, to string }

// matches lists the rules that speak about p, the most special one first.
func (p pair) matches() [4]pair {
	return [4]pair{p, {p.from, ""}, {"", p.to}, {}}
}

// pipe is what all connections of one direction share.
type pipe struct {
	free time.Time // when the bandwidth is next free
}

// transmit returns when the last of n bytes has left a link of limited bandwidth.
func (p *pipe) transmit(now time.Time, n int, bandwidth int) time.Time {
	if bandwidth <= 0 {
		return now
	}
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(n) / float64(bandwidth) * float64(time.Second)))
	return p.free
}
