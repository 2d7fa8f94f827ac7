package pool

import (
	"context"
	"testing"
	"time"
)

// firstSwap opens a session on n1 and makes a second generation.
func firstSwap(w *world) Session {
	w.start("n1", echo, nil)
	w.start("n2", echo, nil)
	w.apply("n1")
	settle(time.Second)
	s := w.open("n1", OpenOptions{})
	w.apply("n1", "n2")
	settle(time.Second)
	return s
}

func TestForceCloseEndsADrain(t *testing.T) {
	for _, tt := range []struct {
		force, ttl Duration
		want       time.Duration
	}{
		{seconds(20), 0, 20 * time.Second},
		{seconds(20), seconds(60), 60 * time.Second},
		{0, seconds(90), 300 * time.Second},
		{0, 0, 300 * time.Second},
	} {
		inWorld(t, func(s *Settings) { s.ForceClose, s.DrainTTL = tt.force, tt.ttl }, func(w *world) {
			start := time.Now()
			s := firstSwap(w)
			settle(tt.want - time.Since(start) - time.Second)
			if s.Err() != nil {
				t.Fatalf("force_close %v, drain_ttl %v: ended early: %v", tt.force, tt.ttl, s.Err())
			}
			settle(3 * time.Second)
			wantClose(t, s.Err(), CodeDraining)
			snap := w.pool.Snapshot()
			if snap.ForceCloses["deadline"] != 1 || snap.SessionsClosed["force_closed"] != 1 {
				t.Errorf("%v %v", snap.ForceCloses, snap.SessionsClosed)
			}
			warned := w.events.count(EventDrainSlow)
			if want := tt.ttl != 0 && tt.ttl.D() < tt.want; (warned == 1) != want {
				t.Errorf("drain_ttl %v: warned %d times", tt.ttl, warned)
			}
		})
	}
}

func TestDrainThresholdSparesTheYoungest(t *testing.T) {
	for _, threshold := range []int{0, 2} {
		inWorld(t, func(s *Settings) { s.DrainThreshold = threshold }, func(w *world) {
			w.start("n1", echo, nil)
			var sessions []Session
			for range 6 {
				w.apply("n1")
				w.pool.co.mu.Lock()
				w.pool.co.triggerLocked(time.Now(), 0) // a swap although the map is the same
				w.pool.co.mu.Unlock()
				w.pool.poke()
				settle(2 * time.Second)
				sessions = append(sessions, w.open("n1", OpenOptions{}))
			}
			settle(2 * time.Second)
			var over int
			for i, s := range sessions {
				if s.Err() != nil {
					over++
					if i >= 3 {
						t.Errorf("session %d of 6 was closed", i)
					}
				}
			}
			if want := map[int]int{0: 0, 2: 3}[threshold]; over != want {
				t.Errorf("threshold %d: %d closed, want %d", threshold, over, want)
			}
			if n := w.pool.Snapshot().ForceCloses["threshold"]; int(n) != over {
				t.Errorf("threshold counted %d times", n)
			}
		})
	}
}

func TestDrainingTwiceKeepsTheClock(t *testing.T) {
	w := &writer{contour: contourActive}
	at := time.Unix(100, 0)
	if !w.drain(at, "first") || w.drain(at.Add(time.Hour), "second") {
		t.Fatal("the second call is not told apart")
	}
	if w.drainStart != at || w.drainWhy != "first" {
		t.Errorf("clock %v, reason %q", w.drainStart, w.drainWhy)
	}
	defer func() {
		if recover() == nil {
			t.Error("draining -> active did not panic")
		}
	}()
	w.promote()
}

// TestSweepAndWatchdogTogether: a draining writer whose peer does not read can
// neither flush nor say goodbye; the watchdog frees it.
func TestSweepAndWatchdogTogether(t *testing.T) {
	inWorld(t, func(s *Settings) {
		s.ForceClose, s.DrainTTL = seconds(10), 0
		s.PingTimeout, s.PingMisses, s.PingInterval = millis(1100), 10, seconds(30) // liveness shall not do it
	}, func(w *world) {
		calm := func(c *ServerConfig) { c.Settings = *w.pool.settings() }
		w.start("n1", hold, calm)
		w.start("n2", hold, calm)
		w.apply("n1")
		settle(time.Second)
		w.net.Silence("gateway", "n1", true)
		s := w.open("n1", OpenOptions{})
		if err := s.Send(context.Background(), make([]byte, 2<<20)); err != nil {
			t.Fatal(err)
		}
		w.apply("n2")
		settle(12 * time.Second)
		wantClose(t, s.Err(), CodeDraining)
		settle(10 * time.Second)
		snap := w.pool.Snapshot()
		if snap.ForceCloses["watchdog"] == 0 {
			t.Errorf("forced: %v", snap.ForceCloses)
		}
		for _, ws := range snap.Writers {
			if ws.Group == "n1" {
				t.Errorf("still there: %+v", ws)
			}
		}
	})
}

func TestDrainingRemovesNeitherRefillNorQuarantine(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		s := firstSwap(w)
		s.Close(CodeNormal)
		settle(5 * time.Second)
		snap := w.pool.Snapshot()
		if snap.Connects["ok"] != 3+6 {
			t.Errorf("%d connects, want 9", snap.Connects["ok"])
		}
		for _, g := range snap.Groups {
			if g.Quarantined != 0 || g.Losses != 0 || g.Demand != 0 {
				t.Errorf("%+v", g)
			}
		}
		if snap.WriterLosses["retired"] != 3 {
			t.Errorf("losses %v", snap.WriterLosses)
		}
	})
}

func TestPeerGoAwayMovesNewSessions(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		n := w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		s := w.open("n1", OpenOptions{})
		n.srv.GoAway()
		settle(100 * time.Millisecond)
		<-s.Draining()
		settle(openGrace)
		mustEcho(t, s, []byte("runs on"))
		if _, err := w.pool.Open(context.Background(), "n1", OpenOptions{Rescue: true}); err == nil {
			t.Error("a paused node got a session")
		}
		tries := w.group("n1").Tries
		settle(time.Minute)
		if got := w.group("n1").Tries - tries; got > 100 {
			t.Errorf("%d connects in a minute to a paused node", got)
		}
		n.srv.Resume()
		settle(5 * time.Second)
		fresh := w.open("n1", OpenOptions{})
		mustEcho(t, fresh, []byte("again"))
		mustEcho(t, s, []byte("the old one too"))
		s.Close(CodeNormal)
		fresh.Close(CodeNormal)
	})
}

func TestServerDrainsUnderItsDeadline(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		n := w.start("n1", echo, func(c *ServerConfig) { c.DrainTime = 20 * time.Second })
		w.apply("n1")
		settle(time.Second)
		a, b := w.open("n1", OpenOptions{}), w.open("n1", OpenOptions{})
		start := time.Now()
		n.cancel()
		settle(5 * time.Second)
		mustEcho(t, a, []byte("time to finish"))
		a.Close(CodeNormal)
		<-b.Done()
		wantClose(t, b.Err(), CodeDraining)
		if took := time.Since(start); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("the rest was closed after %v", took)
		}
		n.stop(t)
	})
}
