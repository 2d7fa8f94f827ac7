package pool

import (
	"time"

	"hecate/pool/wire"
)

// receiveLoop is the only one that reads from the socket. It never waits for a
// session: a slow consumer fills its own inbox and nothing else.
func (l *link) receiveLoop() {
	defer l.wg.Done()
	in := &inbound{link: l}
	r := wire.NewReader(in)
	var f wire.Frame
	// A large payload is read into memory that its session can keep; a small one
	// is copied out of the reader, which is cheaper than asking for memory first.
	var own *buffer
	room := func(n int) []byte {
		if n < keptPayload || f.Type != wire.TypeData {
			return nil
		}
		if own == nil || cap(own.b) < n {
			l.st.put(own)
			own = l.st.get(n)
		}
		return own.b[:n]
	}
	defer func() { l.st.put(own) }()
	none := (*buffer)(nil)
	for {
		if err := r.NextInto(&f, room); err != nil {
			l.fail(faultOf(err))
			return
		}
		in.frames++
		in.bytes += uint64(len(f.Payload))
		if f.Type == wire.TypeData && len(f.Payload) >= keptPayload {
			l.dispatch(&f, &own)
		} else {
			l.dispatch(&f, &none)
		}
	}
}

// keptPayload is from how many bytes on a payload is read into memory of its own.
const keptPayload = 8 << 10

// inbound notes, once per read of the socket, that the peer lives and what the
// frames since the last read amounted to.
type inbound struct {
	link          *link
	frames, bytes uint64
}

func (in *inbound) Read(p []byte) (int, error) {
	l := in.link
	if in.frames > 0 {
		l.counts.framesReceived.Add(in.frames)
		l.counts.bytesReceived.Add(in.bytes)
		in.frames, in.bytes = 0, 0
	}
	n, err := l.conn.Read(p)
	if n > 0 {
		l.heard.Store(int64(time.Since(l.born)))
	}
	return n, err
}

// dispatch acts on one frame. Malformed control payloads and unknown types are
// counted and ignored; the stream itself was verified before.
func (l *link) dispatch(f *wire.Frame, own **buffer) {
	switch f.Type {
	case wire.TypeData:
		if s := l.owner.find(f.ConnID); s != nil {
			s.deliver(f.Flags, f.Payload, own)
		} else {
			l.unknown(f.ConnID)
		}
	case wire.TypeAck:
		l.onAck(f)
	case wire.TypeOpen:
		l.onOpen(f)
	case wire.TypeClose, wire.TypeCancel:
		l.onEnd(f)
	case wire.TypePing, wire.TypePong, wire.TypeWant:
		l.onToken(f)
	case wire.TypeGoAway:
		if r, err := wire.ParseReason(f.Payload); err == nil {
			l.owner.goAway(r)
		} else {
			l.counts.drop(dropPayload)
		}
	default:
		l.counts.drop(dropType)
	}
}

// unknown answers a frame for a session that is not, or no longer, here.
func (l *link) unknown(id uint64) {
	l.counts.drop(dropUnknown)
	l.out.answer(id, CodeUnknown)
}

func (l *link) onAck(f *wire.Frame) {
	a, err := wire.ParseAck(f.Payload)
	if err != nil {
		l.counts.drop(dropPayload)
		return
	}
	if s := l.owner.find(f.ConnID); s != nil {
		s.acked(a)
		return
	}
	l.unknown(f.ConnID)
}

func (l *link) onOpen(f *wire.Frame) {
	o, err := wire.ParseOpen(f.Payload)
	if err != nil {
		l.counts.drop(dropPayload)
		return
	}
	if !l.owner.open(f.ConnID, o) {
		l.counts.drop(dropRefused)
		l.out.answer(f.ConnID, CodeRefused)
	}
}

// onEnd never answers: two sides that both forgot a session must not go on
// about it.
func (l *link) onEnd(f *wire.Frame) {
	r, err := wire.ParseReason(f.Payload)
	if err != nil {
		l.counts.drop(dropPayload)
		return
	}
	if s := l.owner.find(f.ConnID); s != nil {
		s.closedByPeer(r, f.Type == wire.TypeCancel)
	}
}

func (l *link) onToken(f *wire.Frame) {
	token, err := wire.ParsePing(f.Payload)
	switch {
	case err != nil:
		l.counts.drop(dropPayload)
	case f.Type == wire.TypePing:
		l.out.pong(token)
	case f.Type == wire.TypePong:
		l.onPong(token)
	default:
		l.owner.wanted(int(min(token, maxWanted)))
	}
}

func (l *link) onPong(token uint64) {
	l.life.Lock()
	took, known := l.life.pong(token, time.Now())
	l.rtt.Store(int64(l.life.rtt.smoothed))
	changed := l.publishHealthLocked()
	l.life.Unlock()
	if known {
		l.owner.answered(took)
	}
	if changed {
		l.owner.healthChanged()
	}
}

// publishHealthLocked copies the health for readers without the lock.
func (l *link) publishHealthLocked() (changed bool) {
	return l.degraded.Swap(l.life.health.degraded) != l.life.health.degraded
}
