package pool

import (
	"context"
	"errors"
	"testing"
	"time"
)

func direct(s *Settings) { s.Fallback = FallbackDirect }

func TestDirectSessionsBypassThePool(t *testing.T) {
	inWorld(t, direct, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		s := w.open("n1", OpenOptions{Payload: []byte("first")})
		if got, err := s.Recv(context.Background()); err != nil || string(got) != "first" {
			t.Fatalf("%q %v", got, err)
		}
		mustEcho(t, s, make([]byte, 100000))
		if s.(*session).bound.w != nil {
			t.Error("a direct session sits on a pool's writer")
		}
		if n := w.pool.Snapshot().DirectOpen; n != 1 {
			t.Errorf("%d direct connections", n)
		}
		s.Close(CodeNormal)
		settle(2 * time.Second)
		if n := w.pool.Snapshot().DirectOpen; n != 0 {
			t.Errorf("%d direct connections after the end", n)
		}
		if !w.pool.Ready("n1").Ready || !w.pool.Ready("n1").Direct {
			t.Error("not ready")
		}
	})
}

func TestDirectDeliversWhatWasSentBeforeClose(t *testing.T) {
	inWorld(t, direct, func(w *world) {
		got := make(chan int, 1)
		w.start("n1", func(ctx context.Context, s Session) {
			n := 0
			for {
				m, err := s.Recv(ctx)
				if err != nil {
					got <- n
					return
				}
				n += len(m)
			}
		}, nil)
		w.apply("n1")
		s := w.open("n1", OpenOptions{})
		for range 20 {
			if err := s.Send(context.Background(), make([]byte, 100000)); err != nil {
				t.Fatal(err)
			}
		}
		s.Close(CodeNormal)
		if n := <-got; n != 20*100000 {
			t.Errorf("%d bytes arrived", n)
		}
	})
}

func TestDirectFailsTyped(t *testing.T) {
	inWorld(t, direct, func(w *world) {
		w.apply("n1")
		if _, err := w.pool.Open(context.Background(), "n1", OpenOptions{}); !errors.Is(err, ErrNoWriter) {
			t.Errorf("refused: %v", err)
		}
		w.start("n1", echo, func(c *ServerConfig) { c.SwarmID = "other" })
		if _, err := w.pool.Open(context.Background(), "n1", OpenOptions{}); !errors.Is(err, ErrNoWriter) {
			t.Errorf("wrong swarm: %v", err)
		}
		if n := w.pool.Snapshot().OpenFailures["direct_failed"]; n != 2 {
			t.Errorf("counted %d times", n)
		}
	})
}

func TestCutoverBothWays(t *testing.T) {
	inWorld(t, func(s *Settings) { s.ForceClose, s.DrainTTL = seconds(30), 0 }, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		pooled := w.open("n1", OpenOptions{})
		s := w.pool.Snapshot().Settings
		s.Fallback = FallbackDirect
		if err := w.pool.Reload(s); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		straight := w.open("n1", OpenOptions{})
		if straight.(*session).bound.w != nil {
			t.Error("a new session does not follow the new mode")
		}
		mustEcho(t, pooled, []byte("old mode runs on"))
		settle(28 * time.Second)
		mustEcho(t, pooled, []byte("until its time"))
		settle(3 * time.Second)
		wantClose(t, pooled.Err(), CodeDraining)
		mustEcho(t, straight, []byte("is of the mode in force"))
		s.Fallback = FallbackOff
		if err := w.pool.Reload(s); err != nil {
			t.Fatal(err)
		}
		again := w.open("n1", OpenOptions{})
		if again.(*session).bound.w == nil {
			t.Error("no way back into the pool")
		}
		settle(32 * time.Second)
		wantClose(t, straight.Err(), CodeDraining)
		mustEcho(t, again, []byte("pooled again"))
		again.Close(CodeNormal)
		snap := w.pool.Snapshot()
		if snap.SessionsClosed["cutover"] != 2 || snap.ForceCloses["cutover"] != 2 {
			t.Errorf("%v %v", snap.SessionsClosed, snap.ForceCloses)
		}
	})
}

func TestReloadUnbindsNothing(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		s := w.open("n1", OpenOptions{})
		next := DefaultSettings()
		next.Floor, next.FloorBase, next.ReconnectBase, next.Fallback = FloorStatic, 1, seconds(1), FallbackDirect
		next.WriterQueue, next.PingInterval, next.FairShare = 64, seconds(1), On
		if err := w.pool.Reload(next); err != nil {
			t.Fatal(err)
		}
		settle(4 * time.Minute)
		mustEcho(t, s, []byte("undisturbed"))
		s.Close(CodeNormal)
	})
}
