package weights

import (
	"net"
	"time"
)

// A pacer keeps a transfer out of the way of answers that use the same links: it
// sends so slowly that nobody's bytes queue behind its own. It watches the round
// trip of its connection: what this is longer than at its best is time in a queue.
// While nobody answers it does nothing.
type pacer struct {
	busy    func() bool
	measure func() (roundTrip, best time.Duration, ok bool) // of the connection

	looked, adjusted, next time.Time
	on                     bool
	rate                   float64 // bytes per second
}

const (
	politeFirst = 1 << 20 // bytes per second to begin with
	politeLeast = 256 << 10
	politeMost  = 4 << 30
	politeLook  = 20 * time.Millisecond // between two looks whether somebody answers
	politeStep  = 10 * time.Millisecond // between two changes of the rate
	// politeQueue is the time in queues that it keeps below; on far links a
	// quarter of the round trip, since there nobody notices less.
	politeQueue = 2 * time.Millisecond
	// politeBurst is the time of what is sent at once, within the bounds: less
	// than what it keeps below.
	politeBurst             = time.Millisecond
	leastChunk, politeChunk = 4 << 10, chunk
)

// crossesLink says that a connection leaves this machine. Within one there is no
// queue to keep short, and what its round trip shows is how busy the processor is.
func crossesLink(c net.Conn) bool {
	near, ok := c.LocalAddr().(*net.TCPAddr)
	far, known := c.RemoteAddr().(*net.TCPAddr)
	return !ok || !known || !near.IP.Equal(far.IP) && !far.IP.IsLoopback()
}

// step says how many bytes may be sent at once, and how long to wait before.
func (p *pacer) step(now time.Time) (bytes int, wait time.Duration) {
	if now.Sub(p.looked) >= politeLook {
		was := p.on
		p.looked, p.on = now, p.busy()
		if p.on && !was {
			p.rate, p.next, p.adjusted = politeFirst, now, now
		}
	}
	if !p.on {
		return chunk, 0
	}
	roundTrip, best, ok := p.measure()
	if !ok {
		return chunk, 0
	}
	if now.Sub(p.adjusted) >= politeStep {
		p.adjusted = now
		if roundTrip-best > max(politeQueue, best/4) {
			p.rate = max(politeLeast, p.rate*0.8)
		} else {
			p.rate = min(politeMost, p.rate*1.05)
		}
	}
	if p.next.Before(now) {
		p.next = now
	}
	wait = p.next.Sub(now)
	bytes = int(min(politeChunk, max(leastChunk, p.rate*politeBurst.Seconds())))
	p.next = p.next.Add(time.Duration(float64(bytes) / p.rate * float64(time.Second)))
	return bytes, wait
}
