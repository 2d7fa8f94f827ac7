package pool

import (
	"sync"
	"sync/atomic"

	"hecate/pool/wire"
)

// outbox is what one connection still has to send: a queue of frames per
// session (a lane), and beside them the control frames, which overtake data.
//
// Contract: it takes a whole message or nothing. A message that finds no room
// may wait in line for a bounded time. Control needs no room: a lane holds at
// most one ACK and one ending, the connection one PING, one PONG and one
// GOAWAY, and answers for unknown sessions are bounded and dropped by count.
type outbox struct {
	st      *store
	counts  *counters
	wake    chan struct{} // capacity 1: the send loop has work
	bytes   atomic.Int64  // copy of mu.bytes for readers without the lock
	backlog atomic.Int64  // copy of mu.frames, likewise
	// roomAgain, unless nil, is called when there is room after a reservation
	// was refused for want of it. It must not block. Set before the first use.
	roomAgain func()

	mu struct {
		sync.Mutex
		closed    bool
		finishing bool // flush, then stop

		maxFrames, maxBytes int
		frames, bytes       int       // reserved or queued; >= 0
		waiting             []*parcel // in line for room, oldest first
		turnedAway          bool      // a reservation was refused since there was room

		lanes   laneRing // lanes with frames
		urgent  laneRing // lanes with control
		share   fairShare
		link    linkControl
		replies []reply // <= maxReplies
		// ending holds the sessions whose CLOSE or CANCEL waits to be sent: they
		// have left the index, but must not be answered as unknown meanwhile.
		ending map[uint64]struct{}
	}
}

// parcel is one message as a chain of frames.
type parcel struct {
	lane          *lane
	first, last   *buffer
	frames, bytes int
	settled       chan bool // capacity 1, for one that waits: queued, or refused
}

// lane is one session's share of the outbox; guarded by the outbox's lock.
type lane struct {
	id         uint64
	head, tail *buffer
	bytes      int
	drained    chan struct{} // gets a token once bytes < paceLow; nil: nobody waits
	deficit    int
	turn       bool         // the deficit of this turn is granted
	place      [2]lanePlace // in lanes and in urgent
	opened     bool         // the OPEN has left, or came from the peer
	ended      bool         // an ending is queued or sent; nothing may follow
	ack        wire.Ack     // credit to return
	fin        bool         // CLOSE once head is empty
	cancel     bool         // CANCEL at once
	reason     wire.Reason
}

func newOutbox(st *store, counts *counters, s *Settings) *outbox {
	o := &outbox{st: st, counts: counts, wake: make(chan struct{}, 1)}
	o.mu.ending = make(map[uint64]struct{})
	o.mu.lanes.index, o.mu.urgent.index = inLanes, inUrgent
	o.configure(s)
	return o
}

func (o *outbox) configure(s *Settings) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.maxFrames, o.mu.maxBytes = s.WriterQueue, s.WriterQueueBytes
	o.mu.share.on = s.FairShare == On
	o.admitLocked()
}

// pack copies a payload into a parcel of frames of at most wire.MaxPayload.
func (o *outbox) pack(l *lane, payload []byte) parcel {
	p := parcel{lane: l, bytes: len(payload)}
	for more := true; more; {
		chunk, rest, flags := wire.NextChunk(payload)
		b := o.st.copyOf(chunk)
		b.flags = flags
		p.append(b)
		payload, more = rest, flags&wire.FlagMore != 0
	}
	return p
}

func (p *parcel) append(b *buffer) {
	if p.last == nil {
		p.first = b
	} else {
		p.last.next = b
	}
	p.last = b
	p.frames++
}

// drop gives the memory of a parcel back that was not taken.
func (o *outbox) drop(p *parcel) {
	for b := p.first; b != nil; {
		next := b.next
		o.st.put(b)
		b = next
	}
	p.first, p.last = nil, nil
}

// Outcomes of offering a parcel.
type offered int

const (
	taken   offered = iota // queued
	noRoom                 // not now
	refused                // never: the connection or the session has ended
)

// offer queues the parcel if there is room for all of it and nobody waits.
func (o *outbox) offer(p *parcel) offered {
	o.mu.Lock()
	defer o.mu.Unlock()
	got := o.fitsLocked(p)
	if got == taken && len(o.mu.waiting) > 0 {
		got = noRoom
	}
	if got == taken {
		o.countLocked(p.frames, p.bytes)
		o.queueLocked(p)
	}
	return got
}

// reserve takes room for a parcel that will be queued later; see commit.
func (o *outbox) reserve(frames, bytes int) offered {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := parcel{lane: &lane{}, frames: frames, bytes: bytes}
	got := o.fitsLocked(&p)
	switch got {
	case taken:
		o.countLocked(frames, bytes)
	case noRoom:
		o.mu.turnedAway = true
	}
	return got
}

// commit queues a parcel for which room is reserved; false: the connection has
// ended, and the room with it.
func (o *outbox) commit(p *parcel) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closed || p.lane.ended {
		return false
	}
	o.queueLocked(p)
	return true
}

// release gives room back, after frames were written or a reservation was not
// used.
func (o *outbox) release(frames, bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.mu.closed {
		o.countLocked(-frames, -bytes)
		o.admitLocked()
	}
}

// fitsLocked says whether the parcel could be queued now. An empty queue takes
// any single message, so that none is impossible.
func (o *outbox) fitsLocked(p *parcel) offered {
	if o.mu.closed || o.mu.finishing || p.lane.ended {
		return refused
	}
	if o.mu.frames > 0 && (o.mu.frames+p.frames > o.mu.maxFrames || o.mu.bytes+p.bytes > o.mu.maxBytes) {
		return noRoom
	}
	if p.lane.bytes > 0 && p.lane.bytes+p.bytes > o.mu.share.limit(o.mu.maxBytes, o.mu.lanes.size) {
		return noRoom
	}
	return taken
}

func (o *outbox) countLocked(frames, bytes int) {
	o.mu.frames += frames
	o.mu.bytes += bytes
	o.backlog.Store(int64(o.mu.frames))
	o.bytes.Store(int64(o.mu.bytes))
	o.counts.buffered.Add(int64(bytes))
	if frames < 0 && o.mu.turnedAway && o.roomAgain != nil {
		o.mu.turnedAway = false
		o.roomAgain()
	}
	if o.mu.share.on || o.mu.share.pressed {
		o.mu.share.update(max(o.mu.frames*100/o.mu.maxFrames, o.mu.bytes*100/o.mu.maxBytes))
	}
}

func (o *outbox) queueLocked(p *parcel) {
	l := p.lane
	if l.tail == nil {
		l.head = p.first
	} else {
		l.tail.next = p.first
	}
	l.tail = p.last
	l.bytes += p.bytes
	o.mu.lanes.add(l)
	kick(o.wake)
}

// fill is how full the queue is in percent, of frames or of bytes, whichever
// is worse.
func (o *outbox) fill(s *Settings) int {
	byFrames := int(o.backlog.Load()) * 100 / s.WriterQueue
	byBytes := int(o.bytes.Load()) * 100 / s.WriterQueueBytes
	return min(max(byFrames, byBytes), 100)
}

// empty says that nothing is queued or being written.
func (o *outbox) empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.frames == 0 && o.mu.urgent.size == 0
}

// finish lets the send loop end once everything queued is written.
func (o *outbox) finish() {
	o.mu.Lock()
	o.mu.finishing = true
	o.admitLocked()
	o.mu.Unlock()
	kick(o.wake)
}

// close drops everything and wakes all who wait. Idempotent.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closed {
		return
	}
	o.mu.closed = true
	for l := o.mu.lanes.first(); l != nil; l = o.mu.lanes.first() {
		o.purgeLocked(l)
	}
	for l := o.mu.urgent.first(); l != nil; l = o.mu.urgent.first() {
		o.mu.urgent.remove(l)
	}
	o.countLocked(-o.mu.frames, -o.mu.bytes)
	o.mu.replies = nil
	clear(o.mu.ending)
	o.admitLocked()
	kick(o.wake)
}

// purgeLocked drops a lane's frames and returns how much room they held.
func (o *outbox) purgeLocked(l *lane) (frames, bytes int) {
	for b := l.head; b != nil; {
		next := b.next
		bytes += len(b.b)
		frames++
		o.st.put(b)
		b = next
	}
	l.head, l.tail, l.bytes, l.deficit, l.turn = nil, nil, 0, 0, false
	l.unwatchLocked()
	o.mu.lanes.remove(l)
	return frames, bytes
}
