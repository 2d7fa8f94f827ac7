package pool

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"hecate/pool/memnet"
)

// longFat is 200 ms each way with 5% loss. In memnet's TCP a packet that is lost
// three times in a row holds everything up for 4.2 s: no rule that finds a dead
// peer within 2.5 s can tell the two apart, so that is the only permitted cause
// of a close.
var longFat = memnet.Link{Delay: 200 * time.Millisecond, Loss: 0.05}

func TestLongDelayAndLossCloseNothing(t *testing.T) {
	silence := regexp.MustCompile(`silent for ([0-9.]+m?s)`)
	closes := 0
	for seed := range uint64(6) {
		inWorld(t, func(s *Settings) { s.FloorBase, s.ShadowWriters, s.IdleRefresh = 1, 0, 0 }, func(w *world) {
			w.net = memnet.New(seed)
			w.pool.cfg.Dial = w.net.Dialer("gateway")
			w.net.SetLinks("gateway", "n1", longFat)
			w.start("n1", echo, nil)
			w.apply("n1")
			settle(10 * time.Minute)
			for _, e := range w.events.all() {
				if e.Kind != EventWriterLost {
					continue
				}
				closes++
				if m := silence.FindStringSubmatch(e.Reason); m != nil {
					if d, err := time.ParseDuration(m[1]); err != nil || d < maxSilence {
						t.Errorf("seed %d: closed though the peer was %s", seed, m[0])
					}
				}
			}
		})
	}
	// An hour in all, some 13,000 packets each way: 3 triple losses are expected.
	if closes > 8 {
		t.Errorf("%d closes in an hour", closes)
	}
}

func TestSilenceIsFoundWithin2500ms(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond} {
		for phase := range 5 {
			t.Run(fmt.Sprintf("%v/%d", delay, phase), func(t *testing.T) {
				inWorld(t, nil, func(w *world) {
					w.net.SetLinks("gateway", "n1", memnet.Link{Delay: delay})
					w.start("n1", hold, nil)
					w.apply("n1")
					settle(30*time.Second + time.Duration(phase)*110*time.Millisecond)
					s := w.open("n1", OpenOptions{})
					start := time.Now()
					w.net.SilenceHost("n1", true)
					<-s.Done()
					bound := 2500 * time.Millisecond
					if delay <= time.Millisecond {
						bound = 1500*time.Millisecond + 4*delay
					}
					if took := time.Since(start); took > bound {
						t.Errorf("found after %v, want at most %v", took, bound)
					}
				})
			})
		}
	}
}

// A peer that stops reading blocks our writes: no PING can leave, and none may
// be needed.
func TestSilenceBehindABlockedWriteIsFound(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", hold, nil)
		w.apply("n1")
		settle(30 * time.Second)
		var sessions []Session
		for range 12 {
			sessions = append(sessions, w.open("n1", OpenOptions{}))
		}
		w.net.SilenceHost("n1", true)
		start := time.Now()
		for _, s := range sessions {
			go func() { _ = s.Send(t.Context(), make([]byte, 1<<20)) }()
		}
		for _, s := range sessions {
			<-s.Done()
		}
		if took := time.Since(start); took > 2500*time.Millisecond {
			t.Errorf("found after %v", took)
		}
	})
}

func TestLivenessIsAValue(t *testing.T) {
	s := DefaultSettings()
	at := time.Unix(1000, 0)
	l := newLiveness(&s, at, 0)
	v := l.tick(at)
	if v.ping == 0 || v.dead {
		t.Fatalf("first tick: %+v, want a ping", v)
	}
	l.written(v.ping, at)
	if took, ok := l.pong(v.ping, at.Add(3*time.Millisecond)); !ok || took != 3*time.Millisecond {
		t.Fatalf("round trip %v, %v", took, ok)
	}
	if _, ok := l.pong(v.ping, at); ok {
		t.Error("one answer counted twice")
	}
	// Frames of any kind keep it alive, though no PING is answered.
	for i := range 20 {
		now := at.Add(time.Duration(i) * 500 * time.Millisecond)
		l.hear(now)
		v := l.tick(now)
		if v.dead || v.missed > 0 {
			t.Fatalf("tick %d: %+v though frames come in", i, v)
		}
		if v.ping != 0 {
			l.written(v.ping, now)
		}
	}
}

func TestHealthIsQuickToLeaveAndSlowToReturn(t *testing.T) {
	var h healthState
	var r roundTrip
	for range 50 {
		r.sample(20 * time.Millisecond)
	}
	h.answered(r)
	if h.degraded {
		t.Fatal("degraded on a steady path")
	}
	for range 20 {
		r.sample(100 * time.Millisecond)
		h.answered(r)
	}
	if !h.degraded {
		t.Fatalf("not degraded at %+v", r)
	}
	good := 0
	for h.degraded && good < 1000 {
		r.sample(20 * time.Millisecond)
		h.answered(r)
		good++
	}
	if good < recoverAfter+1 || good > 100 {
		t.Errorf("healthy after %d good answers", good)
	}
	h.miss()
	if !h.degraded {
		t.Error("a miss does not degrade")
	}
}
