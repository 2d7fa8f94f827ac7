package pool

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

func TestEchoOverTLS(t *testing.T) {
	noLeaks(t)
	p, _ := loopback(t, echo, "n1", "n2")
	for _, group := range []string{"n1", "n2"} {
		s, err := p.Open(context.Background(), group, OpenOptions{Payload: []byte("hello")})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Recv(context.Background())
		if err != nil || string(got) != "hello" {
			t.Fatalf("got %q, %v", got, err)
		}
		if s.Peer().Node != group {
			t.Errorf("peer is %q, want %q", s.Peer().Node, group)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for _, n := range []int{0, 1, 100, 32 << 10, 32<<10 + 1, 1 << 20, s.MaxMessage()} {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			mustEcho(t, s, b)
		}
		s.Close(CodeNormal)
		wantClose(t, s.Err(), CodeNormal)
	}
}

func TestFloorIsReached(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		g := w.group("n1")
		if g.FloorTarget != 3 || g.FloorCurrent != 3 || g.Contours["active"] != 3 {
			t.Fatalf("group %+v: want 3 active writers", g)
		}
		if r := w.pool.Ready("n1"); !r.Ready || len(r.Missing) != 0 {
			t.Fatalf("readiness %+v", r)
		}
		s := w.open("n1", OpenOptions{})
		mustEcho(t, s, []byte("x"))
		s.Close(CodeNormal)
	})
}

func TestMessagesKeepTheirBoundaries(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		s := w.open("n1", OpenOptions{})
		sizes := []int{0, 3, 70000, 1, 32768, 32769, 200000, 0}
		ctx := context.Background()
		go func() {
			for i, n := range sizes {
				if err := s.Send(ctx, bytes.Repeat([]byte{byte(i)}, n)); err != nil {
					t.Error(err)
				}
			}
		}()
		for i, n := range sizes {
			got, err := s.Recv(ctx)
			if err != nil || !bytes.Equal(got, bytes.Repeat([]byte{byte(i)}, n)) {
				t.Fatalf("message %d: %d bytes, %v; want %d", i, len(got), err, n)
			}
		}
		s.Close(CodeNormal)
	})
}
