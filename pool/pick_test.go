package pool

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestScore(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   scoreInput
		want int
	}{
		{"active and quiet", scoreInput{contour: contourActive}, 0},
		{"warm", scoreInput{contour: contourWarm}, 200},
		{"draining", scoreInput{contour: contourDraining}, 600},
		{"stale", scoreInput{contour: contourActive, stale: true}, 300},
		{"degraded", scoreInput{contour: contourActive, degraded: true}, 250},
		{"not yet idle", scoreInput{contour: contourActive, idle: 44 * time.Second}, 0},
		{"idle", scoreInput{contour: contourActive, idle: 45 * time.Second}, 100},
		{"idle for long", scoreInput{contour: contourActive, idle: 55 * time.Second}, 200},
		{"half full", scoreInput{contour: contourActive, fill: 50}, 200},
		{"far", scoreInput{contour: contourActive, roundTrip: 80 * time.Millisecond}, 80},
		{"very far", scoreInput{contour: contourActive, roundTrip: 3 * time.Second}, 400},
		{"all of it", scoreInput{contourWarm, true, true, time.Minute, 100, time.Second}, 200 + 300 + 250 + 200 + 400 + 400},
	} {
		if got := tt.in.score(); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// lineup makes candidates with the given round trips, all active.
func lineup(p *Pool, g *group, trips ...time.Duration) []candidate {
	var list []candidate
	for _, d := range trips {
		w := seatOnly(p, g)
		w.link.rtt.Store(int64(d))
		list = append(list, candidate{w: w, contour: contourActive})
	}
	return list
}

func TestPickPolicies(t *testing.T) {
	p, g := bareRegistry()
	p.seed = 3
	var trips []time.Duration
	for i := range 20 {
		trips = append(trips, time.Duration(20-i)*10*time.Millisecond)
	}
	list := lineup(p, g, trips...)
	firstPicks := func(pick Pick, sample int) (best, distinct int) {
		s := DefaultSettings()
		s.Pick, s.PickSample = pick, sample
		seen := map[*writer]int{}
		for range 2000 {
			pk := picker{all: list, settings: &s, now: time.Now(), random: p.random}
			c, _ := pk.next()
			seen[c.w]++
		}
		return seen[list[19].w], len(seen)
	}
	if best, _ := firstPicks(PickSorted, 3); best != 2000 {
		t.Errorf("sorted chose the best %d times of 2000", best)
	}
	// The best of k out of 20 is the very best with probability k/20.
	for k, want := range map[int]int{2: 200, 3: 300, 4: 400} {
		best, distinct := firstPicks(PickP2C, k)
		if best < want-80 || best > want+80 || distinct < 15 {
			t.Errorf("sample of %d chose the best %d times of 2000 (want about %d), %d different ones", k, best, want, distinct)
		}
	}
}

func TestPickerOffersEveryCandidateOnce(t *testing.T) {
	p, g := bareRegistry()
	list := lineup(p, g, 5, 4, 3, 2, 1)
	list[0].contour, list[3].contour = contourWarm, contourWarm
	s := DefaultSettings()
	pk := picker{all: list, settings: &s, now: time.Now(), random: p.random}
	var order []contour
	seen := map[*writer]bool{}
	for c, ok := pk.next(); ok; c, ok = pk.next() {
		if seen[c.w] {
			t.Fatal("offered twice")
		}
		seen[c.w] = true
		order = append(order, c.contour)
	}
	if len(order) != 5 || order[2] != contourActive || order[3] != contourWarm {
		t.Errorf("order %v: want the three active ones first", order)
	}
}

func TestPreferredEndpoint(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.start("n1b", echo, func(c *ServerConfig) { c.NodeID = "n1" })
		w.applyMap(Map{Groups: map[string]Group{"n1": GroupOf("n1:1", "n1b:1")}})
		settle(time.Second)
		for _, addr := range []string{"n1:1", "n1b:1", "n1:1"} {
			s := w.open("n1", OpenOptions{Endpoint: addr})
			if got := s.Peer().Addr; got != addr {
				t.Errorf("asked for %s, got %s", addr, got)
			}
			s.Close(CodeNormal)
		}
		s := w.open("n1", OpenOptions{Endpoint: "elsewhere:1"})
		s.Close(CodeNormal)
	})
}

func TestNoWriterWait(t *testing.T) {
	for _, wait := range []Duration{millis(500), seconds(3)} {
		inWorld(t, func(s *Settings) { s.NoWriterWait = wait }, func(w *world) {
			w.apply("n1")
			settle(time.Second)
			start := time.Now()
			_, err := w.pool.Open(context.Background(), "n1", OpenOptions{})
			var none *NoWriterError
			if !errors.As(err, &none) || !errors.Is(err, ErrNoWriter) || none.Reason == "" {
				t.Fatalf("open: %v", err)
			}
			if took := time.Since(start); took != wait.D() {
				t.Errorf("waited %v, want %v", took, wait)
			}
			start = time.Now()
			if _, err = w.pool.Open(context.Background(), "n1", OpenOptions{Rescue: true}); !errors.Is(err, ErrNoWriter) {
				t.Errorf("rescue: %v", err)
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("a rescue waited %v", took)
			}
			if n := w.pool.Snapshot().OpenFailures["no_writer"]; n != 2 {
				t.Errorf("counted %d times", n)
			}
		})
	}
}

func TestWaitingOpenIsServedWhenAWriterComes(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.apply("n1")
		settle(10 * time.Second) // the pauses are long by now
		start := time.Now()
		opened := make(chan Session)
		go func() { opened <- w.open("n1", OpenOptions{Payload: []byte("hi")}) }()
		settle(time.Second)
		w.start("n1", echo, nil)
		s := <-opened
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("took %v", took)
		}
		if got, err := s.Recv(context.Background()); err != nil || string(got) != "hi" {
			t.Errorf("%q %v", got, err)
		}
		s.Close(CodeNormal)
	})
}

func TestWaitingOpenEndsWithItsCause(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.apply("n1", "n2")
		result := func(f func()) error {
			done := make(chan error, 1)
			ctx, cancel := context.WithCancelCause(context.Background())
			go func() {
				_, err := w.pool.Open(ctx, "n1", OpenOptions{})
				done <- err
			}()
			settle(100 * time.Millisecond)
			if f == nil {
				cancel(errors.New("client gone"))
			} else {
				f()
			}
			start := time.Now()
			err := <-done
			if took := time.Since(start); took != 0 {
				t.Errorf("took %v more", took)
			}
			cancel(nil)
			return err
		}
		if err := result(nil); err == nil || err.Error() != `open on "n1": client gone` {
			t.Errorf("cancelled: %v", err)
		}
		if err := result(func() { w.apply("n2") }); !errors.Is(err, ErrUnknownGroup) {
			t.Errorf("declared dead: %v", err)
		}
		w.apply("n1", "n2")
		if err := result(func() { _ = w.pool.Close(context.Background()) }); !errors.Is(err, ErrPoolClosed) {
			t.Errorf("closed: %v", err)
		}
		snap := w.pool.Snapshot().OpenFailures
		for _, why := range []string{"cancelled", "unknown_group", "pool_closed"} {
			if snap[why] != 1 {
				t.Errorf("%s counted %d times", why, snap[why])
			}
		}
	})
}

func TestRecoveryIsAskedForOncePerFiveSeconds(t *testing.T) {
	g := &group{}
	at := time.Unix(1000, 0)
	asked := 0
	for i := range 100 {
		if g.mayRecover(at.Add(time.Duration(i) * 100 * time.Millisecond)) {
			asked++
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times in ten seconds", asked)
	}
}
