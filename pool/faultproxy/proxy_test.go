package faultproxy

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// target is a server behind the proxy that hands its connections to the test.
type target struct {
	net.Listener
	conns chan *net.TCPConn
}

func newTarget(t *testing.T) *target {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &target{l, make(chan *net.TCPConn, 16)}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(s.conns)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns <- c.(*net.TCPConn)
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return s
}

// through makes a proxy and one connection through it. A guard deadline turns a
// hang into a failure; no test depends on its length.
func through(t *testing.T, opt Options) (p *Proxy, client, server *net.TCPConn) {
	t.Helper()
	s := newTarget(t)
	p, err := Listen("127.0.0.1:0", s.Addr().String(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	client = dial(t, p)
	server = <-s.conns
	server.SetDeadline(time.Now().Add(time.Minute))
	t.Cleanup(func() { server.Close() })
	return p, client, server
}

func dial(t *testing.T, p *Proxy) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func mustWrite(t *testing.T, c net.Conn, p []byte) {
	t.Helper()
	if _, err := c.Write(p); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t *testing.T, c net.Conn, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("read %d of %d bytes, equal %v: %v", n, len(want), bytes.Equal(got, want), err)
	}
}

// quiet checks that nothing arrives for a while.
func quiet(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%d bytes, %v", n, err)
	}
	c.SetReadDeadline(time.Now().Add(time.Minute))
}

func TestHonest(t *testing.T) {
	p, c, s := through(t, Options{})
	payload := bytes.Repeat([]byte("0123456789"), 30_000)
	var wg sync.WaitGroup
	wg.Go(func() { mustWrite(t, c, payload); c.CloseWrite() })
	wg.Go(func() {
		if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, payload) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		mustWrite(t, s, payload[:10])
		s.Close()
	})
	wg.Wait()
	if got, err := io.ReadAll(c); err != nil || len(got) != 10 {
		t.Errorf("back: %d bytes, %v", len(got), err)
	}
	if st := p.Stats(); st.Accepted != 1 || st.BytesUp != uint64(len(payload)) || st.BytesDown != 10 {
		t.Errorf("%+v", st)
	}
}

func TestDelayAndThrottle(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault Direction
		bytes int
		least time.Duration
	}{
		{"delay", Direction{Delay: 60 * time.Millisecond}, 10, 60 * time.Millisecond},
		{"throttle", Direction{BytesPerSecond: 100_000}, 10_000, 100 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, client, server := through(t, Options{Fault: Fault{Up: c.fault}})
			start := time.Now()
			mustWrite(t, client, make([]byte, c.bytes))
			mustRead(t, server, make([]byte, c.bytes))
			if d := time.Since(start); d < c.least {
				t.Errorf("took %v, at least %v", d, c.least)
			}
		})
	}
}

func TestLateness(t *testing.T) {
	draw := func(d Direction, seed uint64) (out []time.Duration) {
		rng := rand.New(rand.NewPCG(seed, 0))
		for range 2000 {
			out = append(out, d.lateness(packet, rng))
		}
		return out
	}
	for _, c := range []struct {
		d        Direction
		lo, hi   time.Duration
		late, of int // how many of 2000 come later than Delay, give or take
	}{
		{Direction{Delay: time.Second}, time.Second, time.Second, 0, 0},
		{Direction{Jitter: time.Second}, 0, time.Second, 2000, 5},
		{Direction{Delay: 100 * time.Millisecond, Loss: 0.05}, 100 * time.Millisecond, 10 * time.Second, 100, 40},
	} {
		got := draw(c.d, 1)
		late := 0
		for _, g := range got {
			if g < c.lo || g > c.hi {
				t.Fatalf("%+v: %v", c.d, g)
			}
			if g > c.d.Delay {
				late++
			}
		}
		if late < c.late-c.of || late > c.late+c.of {
			t.Errorf("%+v: %d of 2000 are late, want %d", c.d, late, c.late)
		}
		if !slices.Equal(got, draw(c.d, 1)) {
			t.Errorf("%+v: the seed does not decide", c.d)
		}
	}
}

func TestSilence(t *testing.T) {
	p, c, s := through(t, Options{})
	for _, way := range []Way{Up, Down} {
		from, to := c, s
		fault := Fault{Up: Direction{Silent: true}}
		if way == Down {
			from, to = s, c
			fault = Fault{Down: Direction{Silent: true}}
		}
		if err := p.Set(fault); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, from, []byte("swallowed"))
		mustWrite(t, to, []byte("heard"))
		mustRead(t, from, []byte("heard"))
		quiet(t, to)
		if err := p.Set(Fault{}); err != nil {
			t.Fatal(err)
		}
		mustRead(t, to, []byte("swallowed"))
	}
	// Silence hides a close as well.
	p.Set(Fault{Up: Direction{Silent: true}})
	c.Close()
	quiet(t, s)
	p.Set(Fault{})
	if _, err := s.Read(make([]byte, 1)); err == nil {
		t.Error("the close never arrives")
	}
}

func TestReset(t *testing.T) {
	p, c, s := through(t, Options{})
	mustWrite(t, c, []byte("x"))
	mustRead(t, s, []byte("x"))
	if n := p.Reset(); n != 1 {
		t.Errorf("reset %d connections", n)
	}
	for _, e := range []net.Conn{c, s} {
		if _, err := e.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %v", err)
		}
	}
}

func TestResetPassesThrough(t *testing.T) {
	_, c, s := through(t, Options{})
	mustWrite(t, c, []byte("x"))
	mustRead(t, s, []byte("x"))
	c.SetLinger(0)
	c.Close()
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v", err)
	}
}

func TestHalfClose(t *testing.T) {
	p, c, s := through(t, Options{})
	mustWrite(t, c, []byte("x"))
	mustRead(t, s, []byte("x"))
	p.HalfClose(Down)
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("client: %v", err)
	}
	mustWrite(t, s, []byte("thrown away"))
	mustWrite(t, c, []byte("still works"))
	mustRead(t, s, []byte("still works"))
}

func TestRefuseAndAccept(t *testing.T) {
	p, c, s := through(t, Options{})
	for range 2 { // twice is the same as once
		if err := p.Refuse(true); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v", err)
	}
	mustWrite(t, c, []byte("the old one lives"))
	mustRead(t, s, []byte("the old one lives"))
	if err := p.Refuse(false); err != nil {
		t.Fatal(err)
	}
	dial(t, p)
}

func TestTargetUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	p, err := Listen("127.0.0.1:0", l.Addr().String(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c, err := net.Dial("tcp", p.Addr())
	if err == nil { // the reset may be quicker than the return of Dial
		_, err = c.Read(make([]byte, 1))
		c.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v", err)
	}
	if p.Stats().Failed != 1 {
		t.Error("not counted")
	}
}

func TestCloseEndsEverything(t *testing.T) {
	p, c, s := through(t, Options{Fault: Fault{
		Up: Direction{Silent: true}, Down: Direction{Delay: time.Hour},
	}})
	mustWrite(t, c, []byte("held"))
	mustWrite(t, s, []byte("held"))
	if err := p.Close(); err != nil { // waits for all goroutines
		t.Fatal(err)
	}
	for _, e := range []net.Conn{c, s} {
		if _, err := e.Read(make([]byte, 1)); err == nil {
			t.Error("alive")
		}
	}
	if err := p.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if err := p.Refuse(false); err != nil {
		t.Errorf("after close: %v", err)
	}
	if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a closed proxy listens: %v", err)
	}
}
