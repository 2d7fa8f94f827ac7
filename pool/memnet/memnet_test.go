package memnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const addr = "server:7000"

// inBubble runs f in fake time on a fresh network and checks that it leaves no
// connection behind. Goroutines that it leaves behind fail the bubble itself.
func inBubble(t *testing.T, f func(t *testing.T, n *Network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		f(t, n)
		n.Close()
		if open := n.Conns(); open != 0 {
			t.Errorf("%d ends are open after Close", open)
		}
	})
}

// connect makes a connection from "client" to "server".
func connect(t *testing.T, n *Network) (client, server *Conn) {
	t.Helper()
	l, err := n.Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := n.Dial(context.Background(), "client", addr)
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return c.(*Conn), s.(*Conn)
}

// timed returns how long f takes.
func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// mustWrite writes p and fails the test otherwise.
func mustWrite(t *testing.T, c net.Conn, p []byte) {
	t.Helper()
	if n, err := c.Write(p); n != len(p) || err != nil {
		t.Fatalf("wrote %d of %d: %v", n, len(p), err)
	}
}

// readN reads n bytes and fails the test otherwise.
func readN(t *testing.T, c net.Conn, n int) []byte {
	t.Helper()
	p := make([]byte, n)
	if k, err := io.ReadFull(c, p); err != nil {
		t.Fatalf("read %d of %d: %v", k, n, err)
	}
	return p
}

func TestBothWaysAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network) {
		c, s := connect(t, n)
		n.SetLinks("client", "server", Link{Delay: time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.02, Buffer: 1000})
		var wg sync.WaitGroup
		for i, ends := range [][2]*Conn{{c, s}, {s, c}} {
			sent := make([]byte, 50_000)
			rng := rand.New(rand.NewPCG(7, uint64(i)))
			for j := range sent {
				sent[j] = byte(rng.Uint32())
			}
			wg.Go(func() { mustWrite(t, ends[0], sent); ends[0].CloseWrite() })
			wg.Go(func() {
				if got, err := io.ReadAll(ends[1]); err != nil || !bytes.Equal(got, sent) {
					t.Errorf("direction %d: %d bytes, %v", i, len(got), err)
				}
			})
		}
		wg.Wait()
	})
}

func TestDelayIsExact(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network) {
		n.SetLink("client", "server", Link{Delay: 30 * time.Millisecond})
		n.SetLink("server", "", Link{Delay: 12 * time.Millisecond})
		var c, s *Conn
		if d := timed(func() { c, s = connect(t, n) }); d != 42*time.Millisecond {
			t.Errorf("dialing took %v", d)
		}
		if d := timed(func() { mustWrite(t, c, []byte("hi")); readN(t, s, 2) }); d != 30*time.Millisecond {
			t.Errorf("there: %v", d)
		}
		if d := timed(func() { mustWrite(t, s, []byte("hi")); readN(t, c, 2) }); d != 12*time.Millisecond {
			t.Errorf("back: %v", d)
		}
	})
}

func TestBandwidthIsShared(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network) {
		c1, s1 := connect(t, n)
		c2, s2 := connect(t, n)
		n.SetLinks("client", "server", Link{Bandwidth: 1000})
		d := timed(func() {
			var wg sync.WaitGroup
			for _, e := range [][2]*Conn{{c1, s1}, {c2, s2}} {
				mustWrite(t, e[0], make([]byte, 1500))
				wg.Go(func() { readN(t, e[1], 1500) })
			}
			wg.Wait()
		})
		if d != 3*time.Second {
			t.Errorf("3000 bytes at 1000 per second took %v", d)
		}
	})
}

func TestLossIsLatenessInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network) {
		c, s := connect(t, n)
		n.SetLinks("client", "server", Link{Delay: 10 * time.Millisecond, Loss: 0.05})
		late, last := 0, time.Time{}
		for i := range 400 {
			mustWrite(t, c, []byte{byte(i)})
			time.Sleep(time.Second) // far apart: each loss is seen alone
			var got [1]byte
			sent := time.Now().Add(-time.Second)
			s.net.mu.Lock()
			at := s.in.queue[0].at
			s.net.mu.Unlock()
			if at.Before(last) {
				t.Fatal("order is lost")
			}
			last = at
			if _, err := io.ReadFull(s, got[:]); err != nil || got[0] != byte(i) {
				t.Fatalf("byte %d: %d, %v", i, got[0], err)
			}
			if d := at.Sub(sent); d == 10*time.Millisecond+minRetransmit+20*time.Millisecond {
				late++
			} else if d != 10*time.Millisecond && d < 2*minRetransmit {
				t.Fatalf("byte %d took %v", i, d)
			}
		}
		if late < 8 || late > 40 {
			t.Errorf("%d of 400 were late, about 20 are due", late)
		}
	})
}

func TestSameSeedSameNetwork(t *testing.T) {
	history := func(seed uint64) (out []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			n := New(seed)
			defer n.Close()
			c, s := connect(t, n)
			n.SetLinks("", "", Link{Jitter: time.Second, Loss: 0.2})
			for range 20 {
				out = append(out, timed(func() { mustWrite(t, c, []byte("x")); readN(t, s, 1) }))
			}
		})
		return out
	}
	a, b, other := history(3), history(3), history(4)
	same := 0
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("seed 3 twice: %v and %v", a[i], b[i])
		}
		if a[i] == other[i] {
			same++
		}
	}
	if same == len(a) {
		t.Error("the seed changes nothing")
	}
}

func TestWriterWaitsForReader(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network) {
		n.SetLinks("", "", Link{Buffer: 100})
		c, s := connect(t, n)
		c.SetWriteDeadline(time.Now().Add(time.Second))
		k, err := c.Write(make([]byte, 150))
		if k != 100 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("wrote %d: %v", k, err)
		}
		c.SetWriteDeadline(time.Time{})
		time.AfterFunc(time.Minute, func() { readN(t, s, 60) })
		if d := timed(func() { mustWrite(t, c, make([]byte, 50)) }); d != time.Minute {
			t.Errorf("the writer waited %v", d)
		}
	})
}

func TestSlowReader(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network) {
		c, s := connect(t, n)
		n.SlowReader("server", 1000)
		mustWrite(t, c, make([]byte, 5000))
		if d := timed(func() { readN(t, s, 5000) }); d < 4900*time.Millisecond || d > 5*time.Second {
			t.Errorf("5000 bytes at 1000 per second took %v", d)
		}
		mustWrite(t, c, make([]byte, 5000))
		time.AfterFunc(2*time.Second, func() { n.SlowReader("server", 0) })
		if d := timed(func() { readN(t, s, 5000) }); d > 2*time.Second+100*time.Millisecond {
			t.Errorf("ended after 2 s, took %v", d)
		}
	})
}

func TestSilenceHoldsAndReleases(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network) {
		n.SetLinks("", "", Link{Delay: 10 * time.Millisecond})
		c, s := connect(t, n)
		mustWrite(t, c, []byte("on its way"))
		n.Silence("client", "server", true)
		mustWrite(t, c, []byte(", swallowed"))
		s.SetReadDeadline(time.Now().Add(time.Hour))
		if k, err := s.Read(make([]byte, 99)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("heard %d bytes, %v", k, err)
		}
		mustWrite(t, s, []byte("the other way works"))
		readN(t, c, 19)
		s.SetReadDeadline(time.Time{})
		time.AfterFunc(time.Second, func() { n.Silence("client", "server", false) })
		var got []byte
		if d := timed(func() { got = readN(t, s, 21) }); d != time.Second+10*time.Millisecond {
			t.Errorf("arrived after %v", d)
		}
		if string(got) != "on its way, swallowed" {
			t.Errorf("got %q", got)
		}
	})
}

func TestSilenceHidesClose(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network) {
		c, s := connect(t, n)
		n.SilenceHost("server", true)
		s.Close()
		c.SetReadDeadline(time.Now().Add(time.Hour))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		mustWrite(t, c, []byte("into the void"))
		n.SilenceHost("server", false)
		c.SetReadDeadline(time.Time{})
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestCutResetsBothEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network) {
		c, s := connect(t, n)
		n.SetLinks("", "", Link{Buffer: 10})
		mustWrite(t, c, make([]byte, 10))
		errs := make(chan error, 3)
		go func() { _, err := c.Read(make([]byte, 1)); errs <- err }()
		go func() { _, err := c.Write(make([]byte, 1)); errs <- err }()
		synctest.Wait()
		if k := n.Cut("elsewhere", ""); k != 0 {
			t.Errorf("cut %d connections of a stranger", k)
		}
		if k := n.Cut("server", "client"); k != 1 {
			t.Errorf("cut %d connections", k)
		}
		_, err := s.Read(make([]byte, 1))
		errs <- err
		for range 3 {
			if err := <-errs; !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("got %v", err)
			}
		}
		if n.Conns() != 2 {
			t.Errorf("%d ends; a reset does not close for their owners", n.Conns())
		}
		c.Close()
		s.Close()
	})
}

func TestCloseDeliversThenEOF(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network) {
		n.SetLinks("", "", Link{Delay: 50 * time.Millisecond})
		c, s := connect(t, n)
		mustWrite(t, c, []byte("last words"))
		c.Close()
		mustWrite(t, s, []byte("too late, and nobody knows yet"))
		got, err := io.ReadAll(s)
		if string(got) != "last words" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := s.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write to a closed peer: %v", err)
		}
		if _, err := c.Read(nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read after close: %v", err)
		}
		if err := c.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second close: %v", err)
		}
	})
}

func TestHalfClose(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network) {
		c, s := connect(t, n)
		mustWrite(t, c, []byte("question"))
		c.CloseWrite()
		if got, err := io.ReadAll(s); string(got) != "question" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		mustWrite(t, s, []byte("answer"))
		s.Close()
		if got, err := io.ReadAll(c); string(got) != "answer" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write after CloseWrite: %v", err)
		}
	})
}

func TestCloseWakesWaiters(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network) {
		n.SetLinks("", "", Link{Buffer: 10})
		c, _ := connect(t, n)
		mustWrite(t, c, make([]byte, 10))
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("reader: %v", err)
			}
		})
		wg.Go(func() {
			if _, err := c.Write(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("writer: %v", err)
			}
		})
		synctest.Wait()
		c.Close()
		wg.Wait()
	})
	inBubble(t, func(t *testing.T, n *Network) {
		n.SetLinks("", "", Link{Buffer: 10})
		c, s := connect(t, n)
		time.AfterFunc(time.Second, func() { s.Close() })
		if k, err := c.Write(make([]byte, 100)); k != 10 || !errors.Is(err, syscall.EPIPE) {
			t.Errorf("the peer closes while a writer waits: wrote %d, %v", k, err)
		}
	})
}

func TestDeadlines(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network) {
		c, s := connect(t, n)
		read := func() error { _, err := c.Read(make([]byte, 8)); return err }
		c.SetReadDeadline(time.Now().Add(time.Minute))
		time.AfterFunc(time.Second, func() { c.SetReadDeadline(time.Now().Add(time.Second)) })
		var err error
		if d := timed(func() { err = read() }); d != 2*time.Second || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("shortened: after %v %v", d, err)
		}
		var ne net.Error
		if !errors.As(err, &ne) || !ne.Timeout() {
			t.Errorf("no timeout: %v", err)
		}
		c.SetReadDeadline(time.Now().Add(time.Second))
		time.AfterFunc(500*time.Millisecond, func() { c.SetReadDeadline(time.Time{}) })
		time.AfterFunc(time.Hour, func() { mustWrite(t, s, []byte("x")) })
		if d := timed(func() { err = read() }); d != time.Hour || err != nil {
			t.Errorf("lifted: after %v %v", d, err)
		}
		c.SetDeadline(time.Now())
		if err := read(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("past: %v", err)
		}
	})
}

func TestDialFailures(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network) {
		dial := func(ctx context.Context) (time.Duration, error) {
			start := time.Now()
			c, err := n.Dialer("client")(ctx, "tcp4", addr)
			if err == nil {
				c.Close()
			}
			return time.Since(start), err
		}
		bg := context.Background()
		if _, err := dial(bg); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("nobody listens: %v", err)
		}
		l, _ := n.Listen(addr)
		n.SetLinks("client", "server", Link{Delay: 20 * time.Millisecond})
		n.Refuse("server", true)
		if d, err := dial(bg); !errors.Is(err, syscall.ECONNREFUSED) || d != 40*time.Millisecond {
			t.Errorf("refusing: after %v %v", d, err)
		}
		n.Refuse("server", false)
		if _, err := dial(bg); err != nil {
			t.Errorf("no longer refusing: %v", err)
		}
		n.Silence("server", "client", true)
		ctx, cancel := context.WithTimeout(bg, 5*time.Second)
		defer cancel()
		if d, err := dial(ctx); !errors.Is(err, context.DeadlineExceeded) || d != 5*time.Second {
			t.Errorf("silent: after %v %v", d, err)
		}
		if d, err := dial(bg); !errors.Is(err, syscall.ETIMEDOUT) || d != 63*time.Second {
			t.Errorf("silent without end: after %v %v", d, err)
		}
		time.AfterFunc(500*time.Millisecond, func() { n.Silence("server", "client", false) })
		if d, err := dial(bg); err != nil || d != time.Second+40*time.Millisecond {
			t.Errorf("silence ends: after %v %v", d, err)
		}
		l.Close()
	})
}

func TestListener(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network) {
		l, err := n.Listen("server:0")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Listen(l.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("twice: %v", err)
		}
		for _, bad := range []string{"server", "server:http", "server:70000"} {
			if _, err := n.Listen(bad); err == nil {
				t.Errorf("listens on %q", bad)
			}
		}
		waiting, err := n.Dial(context.Background(), "client", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if _, err := waiting.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("never accepted: %v", err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: %v", err)
		}
		again, err := n.Listen(l.Addr().String())
		if err != nil {
			t.Fatalf("the address is not free again: %v", err)
		}
		go func() { time.Sleep(time.Second); n.Close() }()
		if _, err := again.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed network: %v", err)
		}
		if _, err := n.Dial(context.Background(), "client", addr); !errors.Is(err, net.ErrClosed) {
			t.Errorf("dial on a closed network: %v", err)
		}
	})
}

// Ten minutes of 200 ms each way with 5% loss take ten minutes and not for ever.
func TestPingPongOverABadLine(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network) {
		c, s := connect(t, n)
		n.SetLinks("", "", Link{Delay: 200 * time.Millisecond, Loss: 0.05})
		go func() { _, _ = io.Copy(s, s) }()
		rounds := 0
		for start := time.Now(); time.Since(start) < 10*time.Minute; rounds++ {
			mustWrite(t, c, []byte("ping"))
			readN(t, c, 4)
		}
		if rounds < 900 || rounds > 1500 {
			t.Errorf("%d round trips", rounds)
		}
		c.Close()
	})
}
