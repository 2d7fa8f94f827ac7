package pool

import (
	"context"
	"testing"
)

// plainLoopback is a pool and an echo node on real sockets without TLS, which
// allocates by itself.
func plainLoopback(t testing.TB, h Handler) *Pool {
	t.Helper()
	l := listenLoopback(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, ServerConfig{NodeID: "n1", Plaintext: true}, h) }()
	p, err := New(Config{NodeID: "gateway", Plaintext: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Close(context.Background())
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if err := p.Apply(Map{Revision: 1, Groups: map[string]Group{"n1": GroupOf(l.Addr().String())}}); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSteadyTrafficAllocatesNothing counts the allocations of the whole process,
// both ends included, per message there and back.
func TestSteadyTrafficAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector drops pooled buffers at random")
	}
	s, err := plainLoopback(t, echo).Open(context.Background(), "n1", OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for _, size := range []int{0, 64, 5000, 32 << 10, 100 << 10} {
		payload := make([]byte, size)
		trip := func() {
			if err := s.Send(ctx, payload); err != nil {
				t.Fatal(err)
			}
			m, err := s.Recv(ctx)
			if err != nil {
				t.Fatal(err)
			}
			s.Recycle(m)
		}
		for range 200 {
			trip()
		}
		// PINGs and timers of the pool are in the count as well, hence not 0.
		if n := testing.AllocsPerRun(2000, trip); n > 0.1 {
			t.Errorf("%d bytes: %.2f allocations per round trip", size, n)
		}
	}
	s.Close(CodeNormal)
}

// TestWaitingForCreditAllocatesNothing: a sender that is faster than its reader
// waits for every message.
func TestWaitingForCreditAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector drops pooled buffers at random")
	}
	s, err := plainLoopback(t, sink).Open(context.Background(), "n1", OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	payload := make([]byte, 64)
	burst := func() {
		for range 1000 {
			if err := s.Send(ctx, payload); err != nil {
				t.Fatal(err)
			}
		}
	}
	burst()
	if n := testing.AllocsPerRun(200, burst); n > 3 {
		t.Errorf("%.1f allocations per 1,000 messages", n)
	}
	s.Close(CodeNormal)
}
