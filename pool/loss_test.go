package pool

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLostWriterEndsWaitingSessionAtOnce(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", hold, nil)
		w.apply("n1")
		settle(time.Second)
		s := w.open("n1", OpenOptions{})
		ended := make(chan error, 1)
		go func() {
			_, err := s.Recv(context.Background())
			ended <- err
		}()
		synctest.Wait()
		start := time.Now()
		if w.net.Cut("gateway", "n1") == 0 {
			t.Fatal("nothing was cut")
		}
		err := <-ended
		wantClose(t, err, CodeLost)
		if !errors.Is(err, ErrWriterLost) {
			t.Errorf("%v does not match ErrWriterLost", err)
		}
		if waited := time.Since(start); waited > 0 {
			t.Errorf("the session heard of the loss after %v", waited)
		}
		<-s.Done()
		if n := w.pool.Snapshot().SessionsClosed["writer_lost"]; n != 1 {
			t.Errorf("writer_lost counted %d times, want 1", n)
		}
	})
}

func TestThreeLossesAtOnceAreThreeRestored(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(30 * time.Second) // beyond the flap window
		if n := w.net.Cut("gateway", "n1"); n != 3 {
			t.Fatalf("cut %d connections, want 3", n)
		}
		synctest.Wait()
		if g := w.group("n1"); g.Losses == 0 && g.FloorCurrent < 3 {
			t.Errorf("group %+v: the losses are not visible", g)
		}
		settle(time.Second)
		g := w.group("n1")
		if g.FloorCurrent != 3 || g.Demand != 0 || g.Losses != 0 {
			t.Errorf("group %+v: want 3 writers and no demand", g)
		}
		if n := w.pool.Snapshot().Connects["ok"]; n != 6 {
			t.Errorf("%d connects, want 6", n)
		}
	})
}

func TestPeerThatRefusesFastIsNotHammered(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.apply("n1", "n2") // nobody listens on n1
		w.start("n2", echo, nil)
		settle(time.Minute)
		tries := w.group("n1").Tries
		// Four fast ones (three at once), then outage pauses of up to 3 s.
		if tries < 15 || tries > 45 {
			t.Errorf("%d tries in a minute, want some 15 to 45", tries)
		}
		if got := w.group("n2"); got.FloorCurrent != 3 {
			t.Errorf("the healthy group is at %+v", got)
		}
	})
}

func TestPeerThatRefusesHelloIsNotHammered(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, func(c *ServerConfig) { c.SwarmID = "another" })
		w.apply("n1")
		settle(time.Minute)
		g := w.group("n1")
		if g.Tries < 15 || g.Tries > 45 {
			t.Errorf("%d tries in a minute, want some 15 to 45", g.Tries)
		}
		if n := w.pool.Snapshot().Connects["refused"]; n != g.Tries {
			t.Errorf("%d refusals counted, want %d", n, g.Tries)
		}
		if w.events.count(EventRefused) == 0 {
			t.Error("no event tells of the refusals")
		}
	})
}

func TestPeerThatDiesAtBirthIsNotHammered(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		stop := time.Now().Add(time.Minute)
		for time.Now().Before(stop) {
			settle(50 * time.Millisecond)
			w.net.Cut("gateway", "n1")
		}
		if g := w.group("n1"); g.Tries > 100 { // three per pause
			t.Errorf("%d tries in a minute", g.Tries)
		}
	})
}

func TestFlappingEndpointIsQuarantined(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.start("n1b", echo, func(c *ServerConfig) { c.NodeID = "n1" })
		w.applyMap(Map{Groups: map[string]Group{"n1": GroupOf("n1:1", "n1b:1")}})
		settle(5 * time.Second)
		w.net.Cut("gateway", "n1") // lived within the flap window
		settle(time.Second)
		if g := w.group("n1"); g.Quarantined != 1 || g.FloorCurrent != 3 {
			t.Fatalf("group %+v: want one endpoint in quarantine and the floor kept by the other", g)
		}
		for _, ws := range w.pool.Snapshot().Writers {
			if ws.Endpoint == "n1:1" {
				t.Errorf("writer on the quarantined endpoint: %+v", ws)
			}
		}
		settle(25 * time.Second)
		if g := w.group("n1"); g.Quarantined != 0 {
			t.Errorf("quarantine does not end: %+v", g)
		}
	})
}

func TestSingleEndpointIgnoresQuarantineInOutage(t *testing.T) {
	for _, mode := range []Switch{On, Off} {
		inWorld(t, func(s *Settings) { s.OutageMode = mode }, func(w *world) {
			w.start("n1", echo, nil)
			w.apply("n1")
			settle(5 * time.Second)
			w.net.Cut("gateway", "n1")
			settle(4 * time.Second)
			g := w.group("n1")
			if back := g.FloorCurrent == 3; back != (mode == On) {
				t.Errorf("outage mode %v: %+v", mode, g)
			}
		})
	}
}

func TestPeerThatClosesIdleConnections(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, func(c *ServerConfig) { c.IdleTimeout = 30 * time.Second })
		w.apply("n1")
		settle(time.Second)
		lowest := 3
		for range 300 {
			settle(time.Second)
			lowest = min(lowest, w.group("n1").FloorCurrent)
		}
		snap := w.pool.Snapshot()
		if snap.WriterLosses["idle_close"] == 0 {
			t.Error("no idle close was recognised")
		}
		for _, why := range []string{"peer_closed", "reset", "silent"} {
			if n := snap.WriterLosses[why]; n != 0 {
				t.Errorf("%d losses counted as %s", n, why)
			}
		}
		if n := w.events.count(EventConnectFailed) + w.events.count(EventQuarantined); n != 0 {
			t.Errorf("%d failures", n)
		}
		// Once the peer's limit is known, writers are replaced before it.
		closes := snap.WriterLosses["idle_close"]
		for range 300 {
			settle(time.Second)
			if g := w.group("n1"); g.FloorCurrent < g.FloorTarget {
				t.Fatalf("below the floor: %+v", g)
			}
		}
		if n := w.pool.Snapshot().WriterLosses["idle_close"]; n != closes {
			t.Errorf("%d more idle closes after the limit was learned", n-closes)
		}
	})
}

func TestSilentPeerIsClosedInTime(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", hold, func(c *ServerConfig) { // the node judges as well, but shall not be first
			c.Settings = DefaultSettings()
			c.Settings.PingMisses = 10
		})
		w.apply("n1")
		settle(30300 * time.Millisecond) // beyond the flap window
		s := w.open("n1", OpenOptions{})
		start := time.Now()
		w.net.SilenceHost("n1", true)
		<-s.Done()
		if took := time.Since(start); took > 1500*time.Millisecond || took < 500*time.Millisecond {
			t.Errorf("closed after %v, want at most 1.5 s on a LAN", took)
		}
		if w.events.count(EventWriterDegraded) == 0 {
			t.Error("one missed ping did not degrade the writer")
		}
		settle(time.Second)
		if losses := w.pool.Snapshot().WriterLosses; losses["silent"] != 3 {
			t.Errorf("losses %v, want 3 for silence", losses)
		}
		w.net.SilenceHost("n1", false)
		settle(10 * time.Second)
		if g := w.group("n1"); g.FloorCurrent != 3 {
			t.Errorf("did not come back: %+v", g)
		}
	})
}
