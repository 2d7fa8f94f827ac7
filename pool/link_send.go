package pool

import (
	"crypto/tls"
	"time"

	"hecate/pool/wire"
)

// sendLoop is the only one that writes to the socket. Each round: take a
// batch, encode it, flush it in one go, give its room back.
func (l *link) sendLoop() {
	defer l.wg.Done()
	w := wire.NewWriter(l.conn)
	items := make([]outItem, 0, batchFrames+8)
	for {
		var more bool
		items, more = l.out.take(items[:0])
		if len(items) > 0 {
			if err := l.write(w, items); err != nil {
				l.cannotWrite(err)
				return
			}
			continue
		}
		if !more {
			l.goodbye()
			return
		}
		select {
		case <-l.out.wake:
		case <-l.stop:
			return
		}
	}
}

// cannotWrite ends the link, but lets the reader speak first: only it knows
// whether the peer closed in good order, and it learns of a reset at once.
func (l *link) cannotWrite(err error) {
	timer := time.NewTimer(readerVerdict)
	defer timer.Stop()
	select {
	case <-l.stop:
	case <-timer.C:
		l.fail(faultOf(err))
	}
}

// write sends one batch.
func (l *link) write(w *wire.Writer, items []outItem) error {
	frames, bytes := 0, 0
	var ping uint64
	for i := range items {
		it := &items[i]
		if it.buf != nil {
			frames++
			bytes += len(it.buf.b)
		}
		if it.typ == wire.TypePing {
			ping = it.token
		}
		if err := l.encode(w, it); err != nil {
			return err
		}
		l.st.put(it.buf)
		it.buf = nil
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := l.flush(); err != nil {
		return err
	}
	if ping != 0 {
		l.pingWritten(ping)
	}
	l.counts.framesSent.Add(uint64(len(items)))
	l.counts.bytesSent.Add(uint64(bytes))
	if frames > 0 {
		l.out.release(frames, bytes)
	}
	return nil
}

func (l *link) encode(w *wire.Writer, it *outItem) error {
	switch it.typ {
	case wire.TypeData:
		return w.Append(wire.TypeData, it.flags, it.id, it.buf.b)
	case wire.TypeOpen:
		return w.AppendOpen(it.id, wire.Open{WindowBytes: l.mine.WindowBytes, WindowMessages: l.mine.WindowMessages})
	case wire.TypeAck:
		return w.AppendAck(it.id, it.ack)
	case wire.TypePing, wire.TypePong, wire.TypeWant:
		return w.AppendPing(it.typ, it.token)
	default:
		return w.AppendReason(it.typ, it.id, it.reason)
	}
}

func (l *link) pingWritten(token uint64) {
	l.counts.pingsSent.Add(1)
	l.life.Lock()
	l.life.written(token, time.Now())
	l.life.Unlock()
}

// goodbye ends a retired link: everything is written, so say so, and leave the
// last word to the peer. Closing at once would answer whatever it still sends by
// a reset, which may overtake what was just written.
func (l *link) goodbye() {
	if l.fault.Load() != nil {
		return
	}
	l.leaving.Store(true)
	_ = l.conn.SetWriteDeadline(time.Now().Add(closeLinger))
	if conn, ok := l.conn.(*tls.Conn); ok {
		_ = conn.CloseWrite()
	}
	_ = l.endWrite()
	timer := time.NewTimer(closeLinger)
	defer timer.Stop()
	select {
	case <-l.stop:
	case <-timer.C:
		l.fail(linkFault{why: lossRetired})
	}
}
