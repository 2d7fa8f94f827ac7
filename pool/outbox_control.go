package pool

import "hecate/pool/wire"

// linkControl holds the control frames of the connection itself.
type linkControl struct {
	ping, pong       uint64
	hasPing, hasPong bool
	goAway           bool
	reason           wire.Reason
	want             uint64 // connections asked of a reverse node
	hasWant          bool
}

// reply is a CLOSE for a session that this side does not know.
type reply struct {
	id   uint64
	code wire.Code
}

func (o *outbox) control(set func(*linkControl)) {
	o.mu.Lock()
	set(&o.mu.link)
	o.mu.Unlock()
	kick(o.wake)
}

func (o *outbox) ping(token uint64) {
	o.control(func(c *linkControl) { c.ping, c.hasPing = token, true })
}

// pong answers the newest PING; an older answer that did not leave yet is
// replaced, and any frame is a sign of life.
func (o *outbox) pong(token uint64) {
	o.mu.Lock()
	if o.mu.link.hasPong {
		o.counts.drop(dropPong)
	}
	o.mu.link.pong, o.mu.link.hasPong = token, true
	o.mu.Unlock()
	kick(o.wake)
}

func (o *outbox) goAway(r wire.Reason) {
	o.control(func(c *linkControl) { c.goAway, c.reason = true, r })
}

func (o *outbox) want(n int) {
	o.control(func(c *linkControl) { c.want, c.hasWant = uint64(n), true })
}

// answer queues a CLOSE for an unknown session, or counts that it did not. A
// session that is ending here gets none: it would overtake what was sent before
// the real CLOSE, and hide its reason.
func (o *outbox) answer(id uint64, code wire.Code) {
	o.mu.Lock()
	if _, ending := o.mu.ending[id]; ending {
		o.mu.Unlock()
		return
	}
	if len(o.mu.replies) >= maxReplies {
		o.counts.drop(dropReply)
		o.mu.Unlock()
		return
	}
	o.mu.replies = append(o.mu.replies, reply{id, code})
	o.mu.Unlock()
	kick(o.wake)
}

// ack returns credit.
func (o *outbox) ack(l *lane, bytes, messages int) {
	o.mu.Lock()
	if o.mu.closed || l.ended {
		o.mu.Unlock()
		return
	}
	l.ack.Bytes += uint32(bytes)
	l.ack.Messages += uint32(messages)
	o.mu.urgent.add(l)
	o.mu.Unlock()
	kick(o.wake)
}

// end queues a CLOSE behind the lane's frames, or, when the rest is not wanted,
// drops the frames and queues a CANCEL in front of everything. A session whose
// OPEN never left vanishes without a word. Only the first call counts.
func (o *outbox) end(l *lane, r wire.Reason, discard bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closed || l.ended {
		return
	}
	l.ended, l.reason = true, r
	if discard {
		frames, bytes := o.purgeLocked(l)
		o.countLocked(-frames, -bytes)
		l.cancel = l.opened
	} else {
		l.fin = true
	}
	if l.cancel || l.fin && (l.head != nil || l.opened) {
		o.mu.ending[l.id] = struct{}{}
	}
	if l.cancel || l.fin && l.head == nil && l.opened {
		o.mu.urgent.add(l)
	}
	o.admitLocked()
	kick(o.wake)
}

// hush ends the lane without telling the peer, who ended it.
func (o *outbox) hush(l *lane) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closed {
		return
	}
	l.ended, l.fin, l.cancel = true, false, false
	delete(o.mu.ending, l.id)
	o.mu.urgent.remove(l)
	frames, bytes := o.purgeLocked(l)
	o.countLocked(-frames, -bytes)
	o.admitLocked()
}
