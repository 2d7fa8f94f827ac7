package pool

import "hecate/pool/wire"

// outItem is a frame on its way from the queue to the socket.
type outItem struct {
	typ    wire.Type
	flags  wire.Flags
	id     uint64
	buf    *buffer // of DATA and OPEN
	ack    wire.Ack
	reason wire.Reason
	token  uint64
}

// take moves the next frames to items, control first, until the batch is full.
// more is false when the send loop has to end after them.
func (o *outbox) take(items []outItem) (batch []outItem, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closed {
		return items, false
	}
	items = o.takeLinkLocked(items)
	items = o.takeUrgentLocked(items)
	for bytes := 0; bytes < batchBytes && len(items) < batchFrames; {
		l := o.turnLocked()
		if l == nil {
			break
		}
		b := o.takeFrameLocked(l)
		bytes += wire.HeaderSize + len(b.b)
		items = append(items, outItem{typ: frameType(b), flags: b.flags, id: l.id, buf: b})
		if l.head == nil && l.fin {
			l.fin = false
			items = o.takeEndingLocked(items, l, wire.TypeClose)
		}
	}
	return items, len(items) > 0 || !o.mu.finishing
}

func frameType(b *buffer) wire.Type {
	if b.open {
		return wire.TypeOpen
	}
	return wire.TypeData
}

// takeLinkLocked takes the connection's own control frames.
func (o *outbox) takeLinkLocked(items []outItem) []outItem {
	c := &o.mu.link
	if c.hasPong {
		items = append(items, outItem{typ: wire.TypePong, token: c.pong})
	}
	if c.hasPing {
		items = append(items, outItem{typ: wire.TypePing, token: c.ping})
	}
	if c.hasWant { // before the end is announced: who is told to want fewer must not restore this one
		items = append(items, outItem{typ: wire.TypeWant, token: c.want})
	}
	if c.goAway {
		items = append(items, outItem{typ: wire.TypeGoAway, reason: c.reason})
	}
	c.hasPing, c.hasPong, c.goAway, c.hasWant = false, false, false, false
	for _, r := range o.mu.replies {
		items = append(items, outItem{typ: wire.TypeClose, id: r.id, reason: wire.Reason{Code: r.code}})
	}
	o.mu.replies = o.mu.replies[:0]
	return items
}

// takeUrgentLocked takes ACKs and endings.
func (o *outbox) takeUrgentLocked(items []outItem) []outItem {
	for len(items) < batchFrames {
		l := o.mu.urgent.first()
		if l == nil {
			break
		}
		o.mu.urgent.remove(l)
		switch {
		case l.cancel:
			l.cancel = false
			items = o.takeEndingLocked(items, l, wire.TypeCancel)
		case l.fin && l.head == nil:
			l.fin = false
			items = o.takeEndingLocked(items, l, wire.TypeClose)
		case !l.ended && l.ack != (wire.Ack{}):
			items = append(items, outItem{typ: wire.TypeAck, id: l.id, ack: l.ack})
		}
		l.ack = wire.Ack{}
	}
	return items
}

func (o *outbox) takeEndingLocked(items []outItem, l *lane, t wire.Type) []outItem {
	delete(o.mu.ending, l.id)
	return append(items, outItem{typ: t, id: l.id, reason: l.reason})
}

// turnLocked is the lane whose frame goes next.
func (o *outbox) turnLocked() *lane {
	if !o.mu.share.pressed {
		return o.mu.lanes.first()
	}
	for l := o.mu.lanes.first(); l != nil; l = o.mu.lanes.first() {
		if o.mu.share.mayGo(l) {
			return l
		}
		o.mu.lanes.rotate()
	}
	return nil
}

func (o *outbox) takeFrameLocked(l *lane) *buffer {
	b := l.head
	l.head, b.next = b.next, nil
	l.bytes -= len(b.b)
	l.unwatchLocked()
	l.opened = true
	if l.head == nil {
		l.tail, l.deficit, l.turn = nil, 0, false
		o.mu.lanes.remove(l)
		return b
	}
	if o.mu.share.pressed {
		l.deficit -= len(b.b) + frameCost
	} else {
		l.deficit, l.turn = 0, false
		o.mu.lanes.rotate()
	}
	return b
}
