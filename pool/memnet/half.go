package memnet

import (
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// segment is what was written at one time and arrives at one time.
type segment struct {
	data []byte
	at   time.Time // arrival
	held bool      // swallowed by silence; arrives when that ends
	fin  bool      // the end of the stream; carries no data
}

// half is one direction of a connection. The network's lock guards it; its
// condition is signalled when anything in it changes.
type half struct {
	net   *Network
	dir   pair
	cond  *sync.Cond
	rng   *rand.Rand
	queue []segment
	size  int       // bytes in queue; 0 <= size, and no write grows it beyond the link's buffer
	last  time.Time // latest arrival so far: order is kept
	next  time.Time // a slow reader gets nothing before

	fin    bool  // the writing end has said its last word
	nobody bool  // the reading end is closed: what is written vanishes
	silent bool  // a black hole now
	reset  error // both directions ended at once
}

func newHalf(n *Network, dir pair, stream uint64) *half {
	return &half{
		net: n, dir: dir, cond: sync.NewCond(&n.mu), rng: rand.New(rand.NewPCG(n.seed, stream)),
		silent: n.silentLocked(dir),
	}
}

// room returns how many bytes may be written now.
func (h *half) room() int {
	if h.nobody {
		return 1 << 30
	}
	return h.net.linkLocked(h.dir).buffer() - h.size
}

// send puts p on its way; there is room for it.
func (h *half) send(p []byte, now time.Time) {
	if h.nobody {
		return
	}
	h.push(segment{data: append([]byte(nil), p...)}, now)
	h.size += len(p)
}

// finish says the last word.
func (h *half) finish(now time.Time) {
	if !h.fin && h.reset == nil {
		h.fin = true
		h.push(segment{fin: true}, now)
	}
}

// push computes when s arrives and queues it.
func (h *half) push(s segment, now time.Time) {
	s.held = h.silent
	if !s.held {
		s.at = h.arrival(len(s.data), now)
	}
	h.queue = append(h.queue, s)
	h.cond.Broadcast()
}

func (h *half) arrival(n int, now time.Time) time.Time {
	link := h.net.linkLocked(h.dir)
	at := h.net.pipeLocked(h.dir).transmit(now, n, link.Bandwidth)
	at = at.Add(link.Delay + link.lateness(n, h.rng))
	if at.Before(h.last) {
		at = h.last
	}
	h.last = at
	return at
}

// silenceLocked begins or ends a black hole. At its end everything that was
// swallowed is sent again.
func (h *half) silenceLocked(on bool, now time.Time) {
	if h.silent == on {
		return
	}
	h.silent = on
	for i := range h.queue {
		s := &h.queue[i]
		switch {
		case on && s.at.After(now):
			s.held = true
		case !on && s.held:
			s.held = false
			s.at = h.arrival(len(s.data), now)
		}
	}
	if on {
		h.last = now
	}
	h.cond.Broadcast()
}

// receive copies what has arrived into p. Without any it returns 0 and when to
// look again; the zero time means when the half changes.
func (h *half) receive(p []byte, now time.Time) (n int, again time.Time, err error) {
	if len(h.queue) == 0 || h.queue[0].held {
		return 0, time.Time{}, nil
	}
	rate := h.net.slow[h.dir.to]
	if rate > 0 {
		if h.next.After(now) {
			return 0, h.next, nil
		}
		p = p[:min(len(p), max(1, rate/slowSteps))]
	}
	for len(p) > n && len(h.queue) > 0 {
		s := &h.queue[0]
		if s.held || s.at.After(now) {
			break
		}
		if s.fin {
			if n == 0 {
				return 0, time.Time{}, io.EOF
			}
			break
		}
		k := copy(p[n:], s.data)
		n += k
		if s.data = s.data[k:]; len(s.data) == 0 {
			h.queue[0] = segment{}
			h.queue = h.queue[1:]
		}
	}
	if n == 0 {
		return 0, h.queue[0].at, nil
	}
	if rate > 0 {
		h.next = now.Add(time.Duration(float64(n) / float64(rate) * float64(time.Second)))
	}
	h.size -= n
	h.cond.Broadcast()
	return n, time.Time{}, nil
}

// slowSteps is in how many pieces a second's worth of a slow reader comes.
const slowSteps = 20

// arrivedFin reports whether the reading end can know that the stream has ended.
func (h *half) arrivedFin(now time.Time) bool {
	if len(h.queue) == 0 {
		return false
	}
	s := h.queue[len(h.queue)-1]
	return s.fin && !s.held && !s.at.After(now)
}

// abandon is the reading end's close: nothing in the queue will ever be read.
func (h *half) abandon() {
	h.nobody = true
	h.queue, h.size = nil, 0
	h.cond.Broadcast()
}

// fail ends the direction at once.
func (h *half) fail(err error) {
	if h.reset == nil {
		h.reset = err
		h.queue, h.size = nil, 0
		h.cond.Broadcast()
	}
}
