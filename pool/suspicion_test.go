package pool

import (
	"context"
	"testing"
	"time"

	"hecate/pool/memnet"
)

// inTrio runs f with three nodes that have been up for a while.
func inTrio(t *testing.T, change func(*Settings), f func(w *world)) {
	t.Helper()
	inWorld(t, change, func(w *world) {
		for _, name := range []string{"n1", "n2", "n3"} {
			w.start(name, hold, nil)
		}
		w.apply("n1", "n2", "n3")
		settle(30*time.Second + 70*time.Millisecond) // between two PINGs
		f(w)
	})
}

func (w *world) silentLosses() uint64 { return w.pool.Snapshot().WriterLosses["silent"] }

func (w *world) probes(outcome string) uint64 { return w.pool.Snapshot().Probes[outcome] }

func TestSuspectedSilenceIsFoundSoon(t *testing.T) {
	inTrio(t, nil, func(w *world) {
		s := w.open("n1", OpenOptions{})
		settle(time.Millisecond)
		w.net.SilenceHost("n1", true)
		start := time.Now()
		settle(100 * time.Millisecond)
		w.pool.Suspect("n1")
		<-s.Done()
		if took := time.Since(start); took > 620*time.Millisecond {
			t.Errorf("found after %v", took)
		}
		wantClose(t, s.Err(), CodeLost)
		// It is lost as any silent peer is: all of it, at once, and a rescue need not wait.
		settle(time.Millisecond)
		if n := w.events.count(EventGroupSilent); n != 1 {
			t.Errorf("%d times told that it is silent, want once", n)
		}
		if _, err := w.pool.Open(context.Background(), "n1", OpenOptions{Rescue: true}); err == nil {
			t.Error("a session opened on a lost group")
		}
		if got := w.silentLosses(); got != 3 {
			t.Errorf("%d connections were silent, want 3", got)
		}
		if w.probes("silent") != 1 {
			t.Errorf("probes: %v", w.pool.Snapshot().Probes)
		}
	})
}

// The PINGs that are sent anyway raise the suspicion where there are sessions.
func TestSilenceUnderASessionIsFoundWithinASecond(t *testing.T) {
	for phase := range 5 {
		inTrio(t, nil, func(w *world) {
			s := w.open("n1", OpenOptions{})
			settle(time.Second + time.Duration(phase)*110*time.Millisecond)
			w.net.SilenceHost("n1", true)
			start := time.Now()
			<-s.Done()
			if took := time.Since(start); took > 1050*time.Millisecond {
				t.Errorf("phase %d: found after %v", phase, took)
			}
		})
	}
}

// A machine that computes for a minute answers PINGs, and nothing else.
func TestSlowPeerIsNeverCondemned(t *testing.T) {
	inTrio(t, nil, func(w *world) {
		s := w.open("n1", OpenOptions{Payload: []byte("compute")})
		for range 600 {
			w.pool.Suspect("n1")
			settle(100 * time.Millisecond)
		}
		if s.Err() != nil || w.silentLosses() != 0 || w.probes("silent") != 0 {
			t.Errorf("condemned: %v, %v", s.Err(), w.pool.Snapshot().Probes)
		}
		if n := w.probes("answered"); n < 100 || n > 60*4+1 {
			t.Errorf("%d probes in a minute, want some, and at most one in probe_timeout", n)
		}
	})
}

func TestPeerWithASlowHistoryGetsMoreTime(t *testing.T) {
	found := func(l memnet.Link) (took time.Duration) {
		inWorld(t, nil, func(w *world) {
			w.net.SetLinks("gateway", "n1", l)
			for _, name := range []string{"n1", "n2"} {
				w.start(name, hold, nil)
			}
			w.apply("n1", "n2")
			settle(30 * time.Second)
			s := w.open("n1", OpenOptions{})
			settle(time.Second)
			w.net.SilenceHost("n1", true)
			start := time.Now()
			w.pool.Suspect("n1")
			<-s.Done()
			took = time.Since(start)
		})
		return took
	}
	lan, busy, far := found(memnet.Link{}), found(memnet.Link{Jitter: 120 * time.Millisecond}), found(memnet.Link{Delay: 150 * time.Millisecond})
	if lan > 600*time.Millisecond || busy < lan+200*time.Millisecond || far < 1200*time.Millisecond {
		t.Errorf("found after %v near by, %v where answers vary, %v far away", lan, busy, far)
	}
}

// An answer that comes late, but not later than they sometimes do, saves the peer.
func TestLateAnswerWithinTheEstimateSaves(t *testing.T) {
	inTrio(t, nil, func(w *world) {
		w.net.SetLinks("gateway", "n1", memnet.Link{Delay: 100 * time.Millisecond})
		settle(30 * time.Second)
		w.net.SetLinks("gateway", "n1", memnet.Link{Delay: 350 * time.Millisecond})
		s := w.open("n1", OpenOptions{})
		settle(200 * time.Millisecond) // what was on its way has arrived
		w.pool.Suspect("n1")
		settle(10 * time.Second)
		if s.Err() != nil || w.silentLosses() != 0 {
			t.Errorf("condemned: %v", s.Err())
		}
	})
}

// When nobody is heard, it is our own network, or ourselves.
func TestOwnSilenceCondemnsNobody(t *testing.T) {
	inTrio(t, nil, func(w *world) {
		s := w.open("n1", OpenOptions{})
		settle(time.Millisecond)
		w.net.SilenceHost("gateway", true)
		for range 10 {
			w.pool.Suspect("n1")
			w.pool.Suspect("n2")
			settle(100 * time.Millisecond)
		}
		w.net.SilenceHost("gateway", false)
		settle(10 * time.Second)
		if s.Err() != nil || w.silentLosses() != 0 || w.probes("silent") != 0 || w.probes("unsure") == 0 {
			t.Errorf("%v, %d connections silent, probes %v", s.Err(), w.silentLosses(), w.pool.Snapshot().Probes)
		}
	})
}

// Two that die together are both found, as long as somebody else answers.
func TestTwoThatFallSilentTogetherAreBothFound(t *testing.T) {
	inTrio(t, nil, func(w *world) {
		one, two := w.open("n1", OpenOptions{}), w.open("n2", OpenOptions{})
		settle(time.Millisecond)
		w.net.SilenceHost("n1", true)
		w.net.SilenceHost("n2", true)
		start := time.Now()
		w.pool.Suspect("n1")
		w.pool.Suspect("n2")
		<-one.Done()
		<-two.Done()
		if took := time.Since(start); took > 620*time.Millisecond {
			t.Errorf("found after %v", took)
		}
	})
}

// The only peer there is: nobody could take over from it, and nobody says whether we
// are to blame. The ordinary PINGs decide.
func TestOnlyPeerIsLeftToTheOrdinaryPings(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", hold, nil)
		w.apply("n1")
		settle(30 * time.Second)
		s := w.open("n1", OpenOptions{})
		settle(time.Millisecond)
		w.net.SilenceHost("n1", true)
		start := time.Now()
		w.pool.Suspect("n1")
		<-s.Done()
		if took := time.Since(start); took < time.Second || took > 1500*time.Millisecond {
			t.Errorf("found after %v", took)
		}
		if w.probes("unsure") == 0 {
			t.Errorf("probes: %v", w.pool.Snapshot().Probes)
		}
	})
}

func TestManySuspicionsMakeOneProbe(t *testing.T) {
	inTrio(t, nil, func(w *world) {
		before := w.pool.Snapshot().PingsSent
		for range 1000 {
			go w.pool.Suspect("n1")
		}
		settle(30 * time.Millisecond)
		after := w.pool.Snapshot()
		if after.Probes["answered"] != 1 || after.PingsSent-before != 3 {
			t.Errorf("%v, %d PINGs, want one probe and one PING on each of 3 connections", after.Probes, after.PingsSent-before)
		}
	})
}

// A PING that nobody looked after, because we stood still, is not held against the
// peer: it gets all of its time from now on.
func TestOverduePingOfAStandstillCountsForNothing(t *testing.T) {
	for _, late := range []time.Duration{250 * time.Millisecond, 3 * time.Second} {
		inTrio(t, nil, func(w *world) {
			s := w.open("n1", OpenOptions{})
			settle(time.Millisecond)
			w.net.SilenceHost("n1", true)
			start := time.Now()
			w.pool.suspect((*w.pool.groups.Load())["n1"], start.Add(-late))
			settle(30 * time.Millisecond)
			<-s.Done()
			if took := time.Since(start); (took > 400*time.Millisecond) != (late > time.Second) {
				t.Errorf("PING sent %v before: found after %v", late, took)
			}
		})
	}
}

func TestNoSuspicionNoTraffic(t *testing.T) {
	pings := func(timeout Duration) (sent uint64) {
		inTrio(t, func(s *Settings) { s.ProbeTimeout, s.IdleRefresh = timeout, 0 }, func(w *world) {
			s := w.open("n1", OpenOptions{})
			settle(10 * time.Minute)
			s.Close(CodeNormal)
			snap := w.pool.Snapshot()
			sent = snap.PingsSent
			for outcome, n := range snap.Probes {
				if n != 0 {
					t.Errorf("%d probes %s", n, outcome)
				}
			}
		})
		return sent
	}
	if off, on := pings(0), pings(millis(250)); off != on || off == 0 {
		t.Errorf("%d PINGs without suspicion, %d with", off, on)
	}
}

func TestProbeTimeoutMatters(t *testing.T) {
	found := func(timeout Duration) (took time.Duration) {
		inTrio(t, func(s *Settings) { s.ProbeTimeout = timeout }, func(w *world) {
			s := w.open("n1", OpenOptions{})
			settle(time.Millisecond)
			w.net.SilenceHost("n1", true)
			start := time.Now()
			w.pool.Suspect("n1")
			<-s.Done()
			took = time.Since(start)
		})
		return took
	}
	off, quick, usual := found(0), found(millis(50)), found(millis(250))
	if off < time.Second || quick > 150*time.Millisecond || usual < 450*time.Millisecond || usual > 600*time.Millisecond {
		t.Errorf("found after %v, %v and %v", off, quick, usual)
	}
}

// Far away and with losses, suspicion adds no closes to those that are found anyway.
func TestSuspicionOnALongLossyPathClosesNothing(t *testing.T) {
	for seed := range uint64(3) {
		inWorld(t, func(s *Settings) { s.IdleRefresh = 0 }, func(w *world) {
			w.net = memnet.New(seed)
			w.pool.cfg.Dial = w.net.Dialer("gateway")
			w.net.SetLinks("gateway", "n1", longFat)
			w.start("n1", hold, nil)
			w.start("n2", hold, nil)
			w.apply("n1", "n2")
			settle(time.Minute)
			for range 10 * 60 * 4 {
				w.pool.Suspect("n1")
				settle(250 * time.Millisecond)
			}
			if w.probes("silent") != 0 || w.probes("answered") < 100 {
				t.Errorf("seed %d: %v", seed, w.pool.Snapshot().Probes)
			}
		})
	}
}

func TestClosingEndsASuspicion(t *testing.T) {
	inTrio(t, nil, func(w *world) {
		w.net.SilenceHost("n1", true)
		w.pool.Suspect("n1")
		w.pool.Suspect("nobody")
		settle(50 * time.Millisecond) // inWorld closes the pool, and a goroutine left would hang it
	})
}
