package pool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"hecate/pool/memnet"
	"hecate/pool/wire"
)

func testOutbox(change func(*Settings)) *outbox {
	s := DefaultSettings()
	if change != nil {
		change(&s)
	}
	return newOutbox(new(store), new(counters), &s)
}

// drainOutbox takes everything and names it in order.
func drainOutbox(o *outbox) (names []string) {
	for {
		items, _ := o.take(nil)
		if len(items) == 0 {
			return names
		}
		for _, it := range items {
			name := fmt.Sprintf("%v/%d", it.typ, it.id)
			if it.buf != nil {
				o.release(1, len(it.buf.b))
			}
			names = append(names, name)
		}
	}
}

func push(t testing.TB, o *outbox, l *lane, n int) {
	t.Helper()
	p := o.pack(l, make([]byte, n))
	if got := o.offer(&p); got != taken {
		t.Fatalf("offer of %d bytes: %v", n, got)
	}
}

func TestControlOvertakesData(t *testing.T) {
	o := testOutbox(nil)
	a, b := &lane{id: 1, opened: true}, &lane{id: 2, opened: true}
	push(t, o, a, 100)
	push(t, o, b, 100)
	o.ping(7)
	o.pong(8)
	o.ack(b, 1, 1)
	o.end(a, wire.Reason{}, true) // cancel: its data goes with it
	o.end(b, wire.Reason{}, false)
	o.answer(9, wire.CodeUnknown)
	got := fmt.Sprint(drainOutbox(o))
	if want := "[PONG/0 PING/0 CLOSE/9 CANCEL/1 DATA/2 CLOSE/2]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if o.mu.frames != 0 || o.mu.bytes != 0 {
		t.Errorf("%d frames, %d bytes left on the books", o.mu.frames, o.mu.bytes)
	}
}

func TestASessionThatNeverOpenedVanishes(t *testing.T) {
	o := testOutbox(nil)
	l := &lane{id: 1}
	open := o.st.get(0)
	open.open = true
	p := parcel{lane: l}
	p.append(open)
	if o.reserve(1, 0) != taken || !o.commit(&p) {
		t.Fatal("not queued")
	}
	o.end(l, wire.Reason{}, true)
	if got := drainOutbox(o); len(got) != 0 {
		t.Errorf("sent %v", got)
	}
}

func TestLargeMessagesShareTheConnection(t *testing.T) {
	o := testOutbox(nil)
	a, b := &lane{id: 1, opened: true}, &lane{id: 2, opened: true}
	push(t, o, a, 10*wire.MaxPayload)
	push(t, o, b, 64)
	for i, name := range drainOutbox(o) {
		if name == "DATA/2" && i > 1 {
			t.Errorf("the small message waits behind %d chunks", i)
		}
	}
}

func TestQueueBudgets(t *testing.T) {
	for name, change := range map[string]func(*Settings){
		"bytes":  func(s *Settings) { s.WriterQueueBytes = 64 << 10 },
		"frames": func(s *Settings) { s.WriterQueue = 16 },
	} {
		o := testOutbox(change)
		l := &lane{id: 1, opened: true}
		for range 16 {
			push(t, o, l, 4096)
		}
		p := o.pack(l, make([]byte, 4096))
		if got := o.offer(&p); got != noRoom {
			t.Errorf("%s: the queue takes more than its budget: %v", name, got)
		}
		o.drop(&p)
		drainOutbox(o)
		push(t, o, l, 1<<20) // alone, any message fits
	}
}

// TestSendWaitMatters: a connection that does not drain makes Send fail, typed,
// after send_wait, and nothing of the message is sent.
func TestSendWaitMatters(t *testing.T) {
	for _, wait := range []Duration{millis(250), seconds(1)} {
		inWorld(t, func(s *Settings) {
			s.SendWait, s.WriterQueueBytes, s.SessionWindow = wait, 64<<10, 4<<20
			s.FloorBase, s.ShadowWriters, s.PingMisses = 1, 0, 10
		}, func(w *world) {
			w.start("n1", hold, func(c *ServerConfig) { c.Settings = *w.pool.settings() })
			w.apply("n1")
			settle(time.Second)
			s := w.open("n1", OpenOptions{})
			w.net.Silence("gateway", "n1", true)
			var full *QueueFullError
			sent := 0
			for start := time.Now(); ; start = time.Now() {
				err := s.Send(context.Background(), make([]byte, 60<<10))
				if err == nil {
					sent++
					continue
				}
				if !errors.As(err, &full) || !errors.Is(err, ErrQueueFull) {
					t.Fatalf("after %d messages: %v", sent, err)
				}
				if took := time.Since(start); took != wait.D() {
					t.Errorf("refused after %v, want %v", took, wait)
				}
				break
			}
			w.net.Silence("gateway", "n1", false)
			settle(time.Second)
			if err := s.Send(context.Background(), []byte("flows again")); err != nil {
				t.Errorf("after the jam: %v", err)
			}
			s.Close(CodeNormal)
		})
	}
}

// TestSlowSessionDegradesAlone: one consumer never reads; its neighbours on the
// same connection do not notice.
func TestSlowSessionDegradesAlone(t *testing.T) {
	inWorld(t, func(s *Settings) { s.FloorBase, s.ShadowWriters = 1, 0 }, func(w *world) {
		w.net.SetLinks("gateway", "n1", memnet.Link{Delay: time.Millisecond, Bandwidth: 100 << 20})
		w.start("n1", func(ctx context.Context, s Session) {
			first, err := s.Recv(ctx)
			if err == nil && string(first) == "never read" {
				hold(ctx, s)
				return
			}
			echo(ctx, s)
		}, nil)
		w.apply("n1")
		settle(time.Second)
		good := w.open("n1", OpenOptions{Payload: []byte("go")})
		trip := func() time.Duration {
			start := time.Now()
			mustEcho(t, good, make([]byte, 1000))
			return time.Since(start)
		}
		before := trip()
		bad := w.open("n1", OpenOptions{Payload: []byte("never read")})
		ctx, cancel := context.WithCancel(context.Background())
		blocked := make(chan error, 1)
		go func() {
			for {
				if err := bad.Send(ctx, make([]byte, 100<<10)); err != nil {
					blocked <- err
					return
				}
			}
		}()
		settle(time.Second) // its window is full by now
		for range 100 {
			if d := trip(); d > before*3/2 {
				t.Fatalf("a neighbour's round trip went from %v to %v", before, d)
			}
		}
		cancel()
		if err := <-blocked; !errors.Is(err, context.Canceled) {
			t.Errorf("the blocked sender got %v", err)
		}
		bad.Close(CodeCancelled)
		good.Close(CodeNormal)
	})
}

func TestWindowAndQueueSettingsMatter(t *testing.T) {
	inFlight := func(change func(*Settings), size int) (n int) {
		inWorld(t, nil, func(w *world) {
			w.start("n1", hold, func(c *ServerConfig) {
				c.Settings = DefaultSettings()
				change(&c.Settings)
			})
			w.apply("n1")
			settle(time.Second)
			s := w.open("n1", OpenOptions{})
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			for s.Send(ctx, make([]byte, size)) == nil {
				n++
			}
			s.Close(CodeCancelled)
		})
		return n
	}
	if n := inFlight(func(*Settings) {}, 8); n != 768 {
		t.Errorf("%d messages in flight, want 768", n)
	}
	if n := inFlight(func(s *Settings) { s.SessionQueue = 10 }, 8); n != 10 {
		t.Errorf("session_queue 10: %d messages in flight", n)
	}
	if n := inFlight(func(s *Settings) { s.SessionWindow = 1 << 20 }, 64<<10); n != 16 {
		t.Errorf("session_window 1 MiB: %d x 64 KiB in flight", n)
	}
}

func TestTooLargeIsRefusedBeforeAnythingIsSent(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		s := w.open("n1", OpenOptions{})
		var large *TooLargeError
		err := s.Send(context.Background(), make([]byte, s.MaxMessage()+1))
		if !errors.As(err, &large) || large.Limit != s.MaxMessage() {
			t.Errorf("send: %v", err)
		}
		_, err = w.pool.Open(context.Background(), "n1", OpenOptions{Payload: make([]byte, s.MaxMessage()+1)})
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("open: %v", err)
		}
		mustEcho(t, s, make([]byte, s.MaxMessage()))
		s.Close(CodeNormal)
		if n := w.pool.Snapshot().OpenFailures["too_large"]; n != 1 {
			t.Errorf("counted %d times", n)
		}
	})
}

// TestFairShare: under pressure a session with large frames and one with small
// ones get the same bytes, and none may fill the queue alone.
func TestFairShare(t *testing.T) {
	served := func(mode Switch) (small, large int) {
		o := testOutbox(func(s *Settings) { s.FairShare, s.WriterQueueBytes = mode, 1<<20 })
		a, b := &lane{id: 1, opened: true}, &lane{id: 2, opened: true}
		for range 12 {
			push(t, o, a, 32<<10)
		}
		for range 400 {
			push(t, o, b, 1000)
		}
		for small+large < 200<<10 {
			items, _ := o.take(nil)
			for _, it := range items {
				if it.id == 1 {
					large += len(it.buf.b)
				} else {
					small += len(it.buf.b)
				}
			}
		}
		return small, large
	}
	small, large := served(On)
	if small < large*2/3 || small > large*3/2 {
		t.Errorf("fair share: %d bytes of small frames, %d of large ones", small, large)
	}
	if small, large := served(Off); small*5 > large {
		t.Errorf("plain turns: %d and %d bytes: the setting makes no difference", small, large)
	}
	limited := func(mode Switch) (n int) {
		o := testOutbox(func(s *Settings) { s.FairShare, s.WriterQueueBytes = mode, 1<<20 })
		a, b := &lane{id: 1, opened: true}, &lane{id: 2, opened: true}
		push(t, o, b, 1000)
		for p := o.pack(a, make([]byte, 16<<10)); o.offer(&p) == taken; p = o.pack(a, make([]byte, 16<<10)) {
			n++
		}
		return n
	}
	if on, off := limited(On), limited(Off); on > off*2/3 {
		t.Errorf("one session fills %d of %d under fair share", on, off)
	}
}

func TestFairShareHysteresis(t *testing.T) {
	f := fairShare{on: true}
	for _, tt := range []struct {
		percent int
		want    bool
	}{{24, false}, {25, true}, {11, true}, {24, true}, {10, false}, {24, false}, {100, true}} {
		if f.update(tt.percent); f.pressed != tt.want {
			t.Errorf("at %d%%: pressed is %v", tt.percent, f.pressed)
		}
	}
}

func TestInboxKeepsOrderAndBudget(t *testing.T) {
	q := inbox{st: new(store), maxBytes: 1000, maxMessages: 3}
	for i := range 3 {
		if _, err := q.deliver(0, bytes.Repeat([]byte{byte(i)}, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.deliver(0, nil); err != errWindow {
		t.Errorf("a fourth message: %v", err)
	}
	for i := range 3 {
		if b, ok := q.pop(); !ok || b.b[0] != byte(i) {
			t.Fatalf("message %d is wrong", i)
		}
	}
	if _, err := q.deliver(wire.FlagMore, make([]byte, 600)); err != nil {
		t.Fatal(err)
	}
	if _, err := q.deliver(0, make([]byte, 401)); err != errWindow {
		t.Errorf("1,001 bytes: %v", err)
	}
	if done, err := q.deliver(0, make([]byte, 400)); !done || err != nil {
		t.Errorf("1,000 bytes: %v %v", done, err)
	}
	if b, _ := q.pop(); len(b.b) != 1000 {
		t.Errorf("reassembled %d bytes", len(b.b))
	}
	q.clear()
	if q.bytes != 0 || q.count != 0 {
		t.Errorf("%d bytes, %d messages after clear", q.bytes, q.count)
	}
}
