package pool

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"hecate/pool/wire"
)

// rawPeer speaks the wire by hand, so that it can break its rules.
type rawPeer struct {
	t    *testing.T
	conn net.Conn
	w    *wire.Writer
	r    *wire.Reader
}

// dialRaw connects to a node as a gateway.
func (w *world) dialRaw(name string, change func(*wire.Hello)) *rawPeer {
	w.t.Helper()
	conn, err := w.net.Dial(context.Background(), "raw", name+":1")
	if err != nil {
		w.t.Fatal(err)
	}
	h := wire.Hello{Node: "raw", Swarm: "swarm", Role: wire.RoleGateway, WindowBytes: 1 << 20, WindowMessages: 100}
	if change != nil {
		change(&h)
	}
	if _, err := wire.Dial(context.Background(), conn, h, wire.HandshakeOptions{}); err != nil {
		w.t.Fatal(err)
	}
	return &rawPeer{t: w.t, conn: conn, w: wire.NewWriter(conn), r: wire.NewReader(conn)}
}

// acceptRaw is a node that shakes hands and hands every connection to f.
func (w *world) acceptRaw(name string, f func(*rawPeer)) {
	w.t.Helper()
	l, err := w.net.Listen(name + ":1")
	if err != nil {
		w.t.Fatal(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			h := wire.Hello{Node: name, Swarm: "swarm", Role: wire.RoleNode, WindowBytes: 1 << 20, WindowMessages: 100}
			if _, err := wire.Accept(context.Background(), conn, h, wire.HandshakeOptions{}); err != nil {
				_ = conn.Close()
				continue
			}
			go f(&rawPeer{t: w.t, conn: conn, w: wire.NewWriter(conn), r: wire.NewReader(conn)})
		}
	}()
	w.t.Cleanup(func() { _ = l.Close() })
}

func (p *rawPeer) flush() {
	p.t.Helper()
	if err := p.w.Flush(); err != nil {
		p.t.Logf("raw peer: %v", err)
	}
}

// pump answers PINGs and hands all other frames to f until the connection ends
// or f returns false.
func (p *rawPeer) pump(f func(wire.Frame) bool) error {
	for {
		var fr wire.Frame
		if err := p.r.Next(&fr); err != nil {
			return err
		}
		if fr.Type == wire.TypePing {
			token, _ := wire.ParsePing(fr.Payload)
			_ = p.w.AppendPing(wire.TypePong, token)
			p.flush()
			continue
		}
		if !f(fr) {
			return nil
		}
	}
}

// want pumps until a frame of this type for this session comes.
func (p *rawPeer) want(typ wire.Type, id uint64) (got wire.Frame) {
	p.t.Helper()
	err := p.pump(func(f wire.Frame) bool {
		if f.Type == typ && f.ConnID == id {
			got = f
			got.Payload = append([]byte(nil), f.Payload...)
			return false
		}
		return true
	})
	if err != nil {
		p.t.Fatalf("waiting for %v on %d: %v", typ, id, err)
	}
	return got
}

func (p *rawPeer) wantEnd(typ wire.Type, id uint64, code wire.Code) {
	p.t.Helper()
	f := p.want(typ, id)
	if r, err := wire.ParseReason(f.Payload); err != nil || r.Code != code {
		p.t.Fatalf("%v on %d says %v, %v; want code %v", typ, id, r, err, code)
	}
	synctest.Wait() // an ending may be seen before it is counted
}

func (p *rawPeer) open(id uint64) {
	_ = p.w.AppendOpen(id, wire.Open{WindowBytes: 1 << 20, WindowMessages: 100})
}

func TestBrokenWindowEndsThatSessionOnly(t *testing.T) {
	for name, breakIt := range map[string]func(p *rawPeer){
		"bytes": func(p *rawPeer) {
			for range 4<<20/wire.MaxPayload + 1 {
				_ = p.w.Append(wire.TypeData, 0, 1, make([]byte, wire.MaxPayload))
			}
		},
		"messages": func(p *rawPeer) {
			for range 769 {
				_ = p.w.Append(wire.TypeData, 0, 1, nil)
			}
		},
		"endless message": func(p *rawPeer) {
			for range 4<<20/wire.MaxPayload + 1 {
				_ = p.w.Append(wire.TypeData, wire.FlagMore, 1, make([]byte, wire.MaxPayload))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				n := w.start("n1", func(ctx context.Context, s Session) {
					if s.ID() == 1 {
						hold(ctx, s)
						return
					}
					echo(ctx, s)
				}, nil)
				p := w.dialRaw("n1", nil)
				defer p.conn.Close()
				p.open(1)
				p.open(2)
				breakIt(p)
				p.flush()
				p.wantEnd(wire.TypeClose, 1, wire.CodeOverloaded)
				_ = p.w.Append(wire.TypeData, 0, 2, []byte("still here"))
				p.flush()
				if f := p.want(wire.TypeData, 2); string(f.Payload) != "still here" {
					t.Errorf("the neighbour got %q", f.Payload)
				}
				snap := n.srv.Snapshot()
				if snap.SessionsClosed["overloaded"] != 1 || snap.Drops["overloaded"] == 0 {
					t.Errorf("closed %v, drops %v", snap.SessionsClosed, snap.Drops)
				}
				// What still comes for the closed session is counted and answered.
				_ = p.w.Append(wire.TypeData, 0, 1, nil)
				p.flush()
				p.wantEnd(wire.TypeClose, 1, wire.CodeUnknown)
				if n.srv.Snapshot().Drops["unknown_session"] == 0 {
					t.Error("a frame for a closed session is not counted")
				}
			})
		})
	}
}

func TestConsumerThatStopsIsClosed(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		n := w.start("n1", hold, nil)
		w.apply("n1")
		settle(time.Second)
		s := w.open("n1", OpenOptions{})
		blocked := make(chan error, 1)
		go func() {
			for {
				if err := s.Send(context.Background(), make([]byte, 1<<20)); err != nil {
					blocked <- err
					return
				}
			}
		}()
		settle(4 * time.Minute)
		if s.Err() != nil {
			t.Fatalf("closed too early: %v", s.Err())
		}
		settle(2 * time.Minute)
		wantClose(t, <-blocked, CodeOverloaded)
		if c := n.srv.Snapshot().SessionsClosed["consumer_stalled"]; c != 1 {
			t.Errorf("consumer_stalled counted %d times", c)
		}
	})
}

func TestGarbageForTheServer(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		n := w.start("n1", hold, nil)
		p := w.dialRaw("n1", nil)
		defer p.conn.Close()
		_ = p.w.Append(wire.Type(77), 0, 9, []byte("?"))
		p.open(1)
		p.open(1) // again: refused, the first lives on
		_ = p.w.AppendAck(1, wire.Ack{Bytes: 1 << 30, Messages: 1 << 30})
		_ = p.w.AppendAck(5, wire.Ack{Bytes: 1, Messages: 1})
		_ = p.w.Append(wire.TypeData, wire.FlagMore, 1, nil)
		p.flush()
		p.wantEnd(wire.TypeClose, 1, wire.CodeRefused)
		p.wantEnd(wire.TypeClose, 5, wire.CodeUnknown)
		p.wantEnd(wire.TypeClose, 1, wire.CodeProtocol)
		snap := n.srv.Snapshot()
		for _, why := range []string{"unknown_type", "open_refused", "ack_excess", "unknown_session"} {
			if snap.Drops[why] != 1 {
				t.Errorf("%s counted %d times, want 1", why, snap.Drops[why])
			}
		}
		if snap.SessionsClosed["protocol"] != 1 {
			t.Errorf("closed: %v", snap.SessionsClosed)
		}
	})
}

func TestBrokenStreamAbortsTheConnection(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		n := w.start("n1", hold, nil)
		p := w.dialRaw("n1", nil)
		defer p.conn.Close()
		p.open(1)
		p.flush()
		if _, err := p.conn.Write(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if err := p.pump(func(wire.Frame) bool { return true }); err == nil {
			t.Fatal("the connection lives on")
		}
		settle(time.Second)
		snap := n.srv.Snapshot()
		if snap.Losses["protocol"] != 1 || snap.SessionsClosed["writer_lost"] != 1 || snap.Connections != 0 {
			t.Errorf("%+v", snap)
		}
	})
}

func TestHandlersAreBounded(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		release := make(chan struct{})
		running := make(chan struct{}, 100)
		n := w.start("n1", func(context.Context, Session) { running <- struct{}{}; <-release }, func(c *ServerConfig) { c.MaxSessions = 10 })
		p := w.dialRaw("n1", nil)
		defer p.conn.Close()
		for id := range uint64(50) {
			p.open(id + 1)
			_ = p.w.AppendReason(wire.TypeCancel, id+1, wire.Reason{})
		}
		p.flush()
		p.wantEnd(wire.TypeClose, 50, wire.CodeRefused)
		settle(time.Second) // the handlers are goroutines: the answer may be quicker
		if len(running) != 10 {
			t.Errorf("%d handlers run, want 10", len(running))
		}
		if d := n.srv.Snapshot().Drops["open_refused"]; d != 40 {
			t.Errorf("%d refused, want 40", d)
		}
		close(release)
	})
}

func TestHandlerPanicEndsOneSession(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		log := &eventLog{}
		n := w.start("n1", func(context.Context, Session) { panic("oops") }, func(c *ServerConfig) { c.Observe = log.add })
		w.apply("n1")
		settle(time.Second)
		s := w.open("n1", OpenOptions{})
		_, err := s.Recv(context.Background())
		wantClose(t, err, CodeInternal)
		if log.count(EventHandlerPanic) != 1 || n.srv.Snapshot().SessionsClosed["internal"] != 1 {
			t.Errorf("events:\n%s", log)
		}
		if w.group("n1").FloorCurrent != 3 {
			t.Error("a panic cost a connection")
		}
	})
}

func TestStrangersCostLittle(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		log := &eventLog{}
		w.start("n1", hold, func(c *ServerConfig) { c.MaxConns = 8; c.Observe = log.add })
		for range 20 { // they connect and say nothing
			conn, err := w.net.Dial(context.Background(), "stranger", "n1:1")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
		settle(time.Second)
		if n := log.count(EventRefused); n != 12 {
			t.Errorf("%d refused at once, want 12", n)
		}
		settle(5 * time.Second)
		if n := log.count(EventRefused); n != 20 {
			t.Errorf("%d gone after the handshake's time, want all 20", n)
		}
		for _, hello := range [][]byte{[]byte("GET / HTTP/1.1\r\n\r\n"), make([]byte, 1<<16), {'H', 'C', 'T', 'E', 1, 0, 255, 255}} {
			conn, err := w.net.Dial(context.Background(), "stranger", "n1:1")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = conn.Write(hello)
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			for buf := make([]byte, 1024); ; {
				if _, err := conn.Read(buf); err != nil {
					break
				}
			}
			_ = conn.Close()
		}
		p := w.dialRaw("n1", nil) // and who behaves still gets in
		_ = p.conn.Close()
	})
}

// An OPEN may grant less than the hello did.
func TestTheOpenersWindowCounts(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		limits := make(chan int, 1)
		w.start("n1", func(ctx context.Context, s Session) {
			limits <- s.MaxMessage()
			for s.Send(ctx, make([]byte, 1000)) == nil {
			}
		}, nil)
		p := w.dialRaw("n1", nil)
		defer p.conn.Close()
		_ = p.w.AppendOpen(1, wire.Open{WindowBytes: 4000, WindowMessages: 100})
		p.flush()
		if got, want := <-limits, maxMessage(4000); got != want {
			t.Errorf("MaxMessage is %d, want %d", got, want)
		}
		got := 0
		_ = p.conn.SetReadDeadline(time.Now().Add(time.Second))
		_ = p.pump(func(f wire.Frame) bool { got += len(f.Payload) * int(f.ConnID); return true })
		if got != 4000 {
			t.Errorf("%d bytes came, the window is 4,000", got)
		}
	})
}

// Many sessions, each within its window, must not add up to all our memory.
func TestOneConnectionHoldsBoundedMemory(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		n := w.start("n1", hold, nil)
		p := w.dialRaw("n1", nil)
		defer p.conn.Close()
		p.open(1)
		p.open(2)
		p.flush()
		settle(time.Second)
		n.srv.connections()[0].link.maxHeld = 1 << 20
		for range 31 { // just within
			_ = p.w.Append(wire.TypeData, 0, 1, make([]byte, wire.MaxPayload))
		}
		_ = p.w.Append(wire.TypeData, 0, 2, make([]byte, wire.MaxPayload))
		_ = p.w.Append(wire.TypeData, 0, 2, make([]byte, wire.MaxPayload))
		p.flush()
		p.wantEnd(wire.TypeClose, 2, wire.CodeOverloaded)
		snap := n.srv.Snapshot()
		if snap.SessionsOpen != 1 || snap.SessionsClosed["overloaded"] != 1 {
			t.Errorf("%+v", snap)
		}
	})
}
