package pool_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"hecate/pool"
	"hecate/pool/faultproxy"
)

func TestRealSocketReset(t *testing.T) {
	t.Parallel()
	g, p, _ := proxied(t, nil)
	g.whole()
	var sessions []pool.Session
	for range 8 {
		s := g.open()
		g.echoes(s, "before")
		sessions = append(sessions, s)
	}
	if p.Reset() == 0 {
		t.Fatal("nothing to reset")
	}
	for _, s := range sessions {
		if err := g.ends(s); !errors.Is(err, pool.ErrWriterLost) {
			t.Errorf("ended with %v", err)
		}
		if _, err := s.Recv(timeout(t)); !errors.Is(err, pool.ErrWriterLost) {
			t.Errorf("Recv: %v", err)
		}
		if err := s.Send(timeout(t), []byte("x")); !errors.Is(err, pool.ErrWriterLost) {
			t.Errorf("Send: %v", err)
		}
	}
	g.works()
	g.whole()
	if s := g.Snapshot(); s.SessionsOpen != 0 || s.BufferedBytes != 0 {
		t.Errorf("%d sessions and %d bytes are left", s.SessionsOpen, s.BufferedBytes)
	}
}

func TestRealSocketHalfClose(t *testing.T) {
	t.Parallel()
	for _, way := range []faultproxy.Way{faultproxy.Up, faultproxy.Down} {
		t.Run(way.String(), func(t *testing.T) {
			t.Parallel()
			g, p, _ := proxied(t, nil)
			g.whole()
			s := g.open()
			g.echoes(s, "before")
			p.HalfClose(way)
			if err := g.ends(s); !errors.Is(err, pool.ErrWriterLost) {
				t.Errorf("ended with %v", err)
			}
			g.works()
			g.whole()
		})
	}
}

func TestRealSocketBlackHole(t *testing.T) {
	t.Parallel()
	silent := faultproxy.Direction{Silent: true}
	for _, c := range []struct {
		name     string
		up, down faultproxy.Direction
	}{
		{"both", silent, silent},
		{"up", silent, faultproxy.Direction{}},
		{"down", faultproxy.Direction{}, silent},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g, p, n := proxied(t, nil)
			g.whole()
			s := g.open()
			g.echoes(s, "before")
			set(t, p, c.up, c.down)
			err := g.ends(s)
			if !errors.Is(err, pool.ErrWriterLost) {
				t.Errorf("ended with %v", err)
			}
			// The node hears nothing either, or nothing is heard of it, and both give up.
			n.await(pool.EventPeerLost)
			set(t, p, faultproxy.Direction{}, faultproxy.Direction{})
			g.works()
			g.whole()
		})
	}
}

// A short silence is no death: what was held back arrives, and the session goes on.
func TestRealSocketHiccup(t *testing.T) {
	t.Parallel()
	g, p, _ := proxied(t, nil)
	g.whole()
	s := g.open()
	g.echoes(s, "before")
	silent := faultproxy.Direction{Silent: true}
	set(t, p, silent, silent)
	if err := s.Send(timeout(t), []byte("during")); err != nil {
		t.Fatal(err)
	}
	set(t, p, faultproxy.Direction{}, faultproxy.Direction{})
	if got, err := s.Recv(timeout(t)); err != nil || string(got) != "during" {
		t.Errorf("got %q, %v", got, err)
	}
	g.echoes(s, "after")
	s.Close(pool.CodeNormal)
}

// A slow line is no death either: PINGs overtake data, and megabytes arrive whole.
func TestRealSocketSlowLine(t *testing.T) {
	t.Parallel()
	g, p, _ := proxied(t, nil)
	g.whole()
	s := g.open()
	slow := faultproxy.Direction{BytesPerSecond: 1 << 20, Delay: 20 * time.Millisecond}
	set(t, p, slow, slow)
	message := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB: a second each way
	if err := s.Send(timeout(t), message); err != nil {
		t.Fatal(err)
	}
	got, err := s.Recv(timeout(t))
	if err != nil || !bytes.Equal(got, message) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	for why, k := range g.Snapshot().WriterLosses {
		if k > 0 {
			t.Errorf("%d connections lost: %s", k, why)
		}
	}
	s.Close(pool.CodeNormal)
}

// Everything sent before a close arrives before it, although the receiver goes on
// returning credit for a session that the sender has finished with.
func TestRealSocketCloseBehindData(t *testing.T) {
	t.Parallel()
	const messages, size = 60, 32 << 10 // half a window
	r := newRealm(t)
	n := startNode(t, r, nodeID, func(ctx context.Context, s pool.Session) {
		for range messages {
			if err := s.Send(ctx, make([]byte, size)); err != nil {
				t.Errorf("Send: %v", err)
			}
		}
		s.Close(pool.CodeApplication + 7)
	}, nil)
	g := startGate(t, r, n.addr, nil)
	g.whole()
	for round := range 50 {
		s := g.open()
		got := 0
		for {
			p, err := s.Recv(timeout(t))
			if err != nil {
				var closed *pool.CloseError
				if !errors.As(err, &closed) || closed.Code != pool.CodeApplication+7 || got != messages {
					t.Fatalf("round %d: after %d of %d messages: %v", round, got, messages, err)
				}
				break
			}
			got++
			s.Recycle(p)
		}
	}
}

// A handler that does not read holds up its own session and nobody else's.
func TestRealSocketSlowConsumer(t *testing.T) {
	t.Parallel()
	r := newRealm(t)
	release := make(chan struct{})
	n := startNode(t, r, nodeID, func(ctx context.Context, s pool.Session) {
		first, err := s.Recv(ctx)
		if err != nil {
			return
		}
		if string(first) == "stall" {
			<-release
		}
		if err := s.Send(ctx, first); err != nil {
			return
		}
		echo(ctx, s)
	}, nil)
	g := startGate(t, r, n.addr, func(c *pool.Config) {
		c.Settings.Floor, c.Settings.FloorBase, c.Settings.FloorMin, c.Settings.ShadowWriters = pool.FloorStatic, 1, 1, 0
	})
	g.whole()
	stalled, lively := g.open(), g.open()
	if err := stalled.Send(timeout(t), []byte("stall")); err != nil {
		t.Fatal(err)
	}
	chunk, sent := make([]byte, 64<<10), 0
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		err := stalled.Send(ctx, chunk)
		cancel()
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("after %d bytes: %v", sent, err)
			}
			break
		}
		if sent += len(chunk); sent > 64<<20 {
			t.Fatal("64 MiB went to somebody who does not read")
		}
	}
	if window := brisk().SessionWindow; sent > window {
		t.Errorf("%d bytes are in flight, the window is %d", sent, window)
	}
	for range 100 {
		g.echoes(lively, "still here")
	}
	close(release)
	ctx := timeout(t)
	if got, err := stalled.Recv(ctx); err != nil || string(got) != "stall" {
		t.Fatalf("%q, %v", got, err)
	}
	for got := 0; got < sent; {
		p, err := stalled.Recv(ctx)
		if err != nil {
			t.Fatalf("after %d of %d bytes: %v", got, sent, err)
		}
		got += len(p)
		stalled.Recycle(p)
	}
	stalled.Close(pool.CodeNormal)
	lively.Close(pool.CodeNormal)
}

func TestRealSocketRefused(t *testing.T) {
	t.Parallel()
	g, p, _ := proxied(t, func(c *pool.Config) { c.Settings.NoWriterWait = pool.Duration(200 * time.Millisecond) })
	g.whole()
	begin := time.Now()
	if err := p.Refuse(true); err != nil {
		t.Fatal(err)
	}
	p.Reset()
	g.until("no writer is left", func() bool { return !g.Ready(nodeID).Ready })
	_, err := g.Open(timeout(t), nodeID, pool.OpenOptions{})
	var none *pool.NoWriterError
	if !errors.As(err, &none) || none.Group != nodeID || none.Reason == "" {
		t.Errorf("Open: %v", err)
	}
	if _, err := g.Open(timeout(t), nodeID, pool.OpenOptions{Rescue: true}); !errors.Is(err, pool.ErrNoWriter) {
		t.Errorf("Open as a rescue: %v", err)
	}
	e := g.await(pool.EventConnectFailed)
	if !strings.Contains(e.Reason, "refused") || e.Endpoint != p.Addr() {
		t.Errorf("%v", e)
	}
	g.await(pool.EventConnectFailed)
	// No hot loop: a handful of fast tries per lost connection, then pauses.
	failures := 0
	for _, gs := range g.Snapshot().Groups {
		failures += int(gs.Failures)
	}
	if allowed := 40 + int(40*time.Since(begin).Seconds()); failures > allowed {
		t.Errorf("%d tries in %v", failures, time.Since(begin))
	}
	if err := p.Refuse(false); err != nil {
		t.Fatal(err)
	}
	g.works()
	g.whole()
}

// A burst of admissions that is more than a writer's queue holds waits for the
// queue, which empties in no time, and not for a change among the writers.
func TestRealSocketBurstOfOpens(t *testing.T) {
	t.Parallel()
	r := newRealm(t)
	n := startNode(t, r, nodeID, echo, nil)
	g := startGate(t, r, n.addr, func(c *pool.Config) {
		c.Settings.Floor, c.Settings.FloorBase, c.Settings.FloorMin, c.Settings.ShadowWriters = pool.FloorStatic, 1, 1, 0
		c.Settings.WriterQueue = 16
		c.Settings.NoWriterWait = pool.Duration(10 * time.Second)
	})
	g.whole()
	begin := time.Now()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 100 {
				s, err := g.Open(timeout(t), nodeID, pool.OpenOptions{Payload: []byte("first")})
				if err != nil {
					t.Errorf("after %v: %v", time.Since(begin), err)
					return
				}
				if got, err := s.Recv(timeout(t)); err != nil || string(got) != "first" {
					t.Errorf("%q, %v", got, err)
				}
				s.Close(pool.CodeNormal)
			}
		})
	}
	wg.Wait()
}
