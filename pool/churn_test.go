package pool

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hecate/pool/memnet"
)

// TestTenThousandSessions: sockets, goroutines and bytes return to where they
// began.
func TestTenThousandSessions(t *testing.T) {
	const sessions = 10000
	inWorld(t, nil, func(w *world) {
		n := w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		conns, routines := w.net.Conns(), runtime.NumGoroutine()
		list := make([]Session, sessions)
		for i := range list {
			list[i] = w.open("n1", OpenOptions{})
			if i%100 == 0 {
				mustEcho(t, list[i], []byte("x"))
			}
		}
		settle(time.Second)
		if snap := n.srv.Snapshot(); snap.SessionsOpen != sessions {
			t.Errorf("the node has %d sessions", snap.SessionsOpen)
		}
		if w.net.Conns() != conns {
			t.Errorf("%d connections, before %d", w.net.Conns(), conns)
		}
		for _, s := range list {
			s.Close(CodeNormal)
		}
		settle(5 * time.Second)
		if snap := n.srv.Snapshot(); snap.SessionsOpen != 0 || snap.BufferedBytes != 0 {
			t.Errorf("the node keeps %d sessions, %d bytes", snap.SessionsOpen, snap.BufferedBytes)
		}
		if snap := w.pool.Snapshot(); snap.SessionsOpen != 0 || snap.BufferedBytes != 0 {
			t.Errorf("the pool keeps %d sessions, %d bytes", snap.SessionsOpen, snap.BufferedBytes)
		}
		if now := runtime.NumGoroutine(); now > routines+5 {
			t.Errorf("%d goroutines, before %d", now, routines)
		}
	})
}

// TestAnHourOfChurn: nodes come, go, restart, fall silent and are cut; maps
// change; sessions run all the while. At the end the pool is where it began.
func TestAnHourOfChurn(t *testing.T) {
	length := time.Hour
	if testing.Short() {
		length = 5 * time.Minute
	}
	for seed := range uint64(seeds(1)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inWorld(t, func(s *Settings) { s.BindStale = BindStaleTTL; s.ForceClose, s.DrainTTL = seconds(30), 0 }, func(w *world) {
				churn(t, w, rand.New(rand.NewPCG(seed, 9)), length)
			})
		})
	}
}

func churn(t *testing.T, w *world, rng *rand.Rand, length time.Duration) {
	names := []string{"n1", "n2", "n3", "n4"}
	for _, n := range names {
		w.start(n, echo, nil)
	}
	w.net.SetLinks("gateway", "", longFatLite)
	w.apply(names...)
	settle(10 * time.Second)
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var done, failed [8]int
	for i := range done {
		r := rand.New(rand.NewPCG(uint64(i), 11))
		wg.Go(func() { user(ctx, w.pool, r, names, &done[i], &failed[i]) })
	}
	for end := time.Now().Add(length); time.Now().Before(end); {
		disturb(w, rng, names)
		time.Sleep(time.Duration(1+rng.IntN(20)) * time.Second)
	}
	cancel()
	wg.Wait()
	for _, n := range names {
		w.net.SilenceHost(n, false)
		w.net.Refuse(n, false)
	}
	w.apply(names...)
	settle(7 * time.Minute)
	snap := w.pool.Snapshot()
	if snap.SessionsOpen != 0 || snap.BufferedBytes != 0 || !snap.Generation.MapCurrent {
		t.Errorf("%d sessions, %d bytes, %+v", snap.SessionsOpen, snap.BufferedBytes, snap.Generation)
	}
	for _, g := range snap.Groups {
		if g.FloorCurrent < g.FloorTarget || g.FloorCurrent > 3 || g.Contours["draining"] > 1 || g.Dialing != 0 {
			t.Errorf("%+v", g)
		}
	}
	if now := runtime.NumGoroutine(); now > before+10 {
		t.Errorf("%d goroutines, before %d", now, before)
	}
	total, lost := 0, 0
	for i := range done {
		total, lost = total+done[i], lost+failed[i]
	}
	t.Logf("%d conversations, %d of them ended early; closed %v; losses %v; commits %v", total, lost, snap.SessionsClosed, snap.WriterLosses, snap.Commits)
	if total < 1000 && length >= time.Hour {
		t.Errorf("only %d conversations", total)
	}
}

// longFatLite is a network with a little of everything.
var longFatLite = memnet.Link{Delay: 3 * time.Millisecond, Jitter: 2 * time.Millisecond, Loss: 0.005}

// user opens conversations, one after the other, and wants every answer to be
// what it sent.
func user(ctx context.Context, p *Pool, rng *rand.Rand, names []string, done, failed *int) {
	for ctx.Err() == nil {
		s, err := p.Open(ctx, names[rng.IntN(len(names))], OpenOptions{Rescue: rng.IntN(3) == 0})
		if err != nil {
			_ = sleepOr(ctx, time.Second)
			continue
		}
		*done++
		for range 1 + rng.IntN(20) {
			want := make([]byte, rng.IntN(20000))
			if len(want) > 0 {
				want[len(want)-1] = byte(*done)
			}
			if err = s.Send(ctx, want); err != nil {
				break
			}
			var got []byte
			if got, err = s.Recv(ctx); err != nil {
				break
			}
			if len(got) != len(want) || len(got) > 0 && got[len(got)-1] != byte(*done) {
				panic("an answer to another question")
			}
			s.Recycle(got)
			if err = sleepOr(ctx, time.Duration(rng.IntN(3000))*time.Millisecond); err != nil {
				break
			}
		}
		if err != nil {
			*failed++
		}
		s.Close([]CloseCode{CodeNormal, CodeCancelled}[rng.IntN(2)])
	}
}

func sleepOr(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// disturb does one thing that happens in the life of a swarm.
func disturb(w *world, rng *rand.Rand, names []string) {
	name := names[rng.IntN(len(names))]
	switch rng.IntN(9) {
	case 0:
		w.net.Cut("gateway", name)
	case 1:
		w.net.SilenceHost(name, true)
	case 2, 3:
		w.net.SilenceHost(name, false)
		w.net.Refuse(name, false)
	case 4:
		w.net.Refuse(name, true)
	case 5:
		var some []string
		for _, n := range names {
			if rng.IntN(4) > 0 {
				some = append(some, n)
			}
		}
		w.apply(some...)
	case 6:
		w.apply(names...)
	case 7:
		w.pool.Rotate()
	case 8:
		n := w.nodes[name]
		n.srv.GoAway()
		time.Sleep(time.Second)
		n.srv.Resume()
	}
}

// TestPoolAgainstInvariants runs short random lives with many seeds, and checks
// after every step what must always hold.
func TestPoolAgainstInvariants(t *testing.T) {
	for seed := range uint64(seeds(40)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inWorld(t, func(s *Settings) {
				s.BindStale = []BindStale{BindStaleNever, BindStaleTTL, BindStaleAlways}[seed%3]
				s.ReinitParallel = 1 + int(seed%2)
				s.ForceClose, s.DrainTTL, s.DrainThreshold = seconds(20), 0, int(seed%4)
			}, func(w *world) {
				rng := rand.New(rand.NewPCG(seed, 13))
				names := []string{"n1", "n2", "n3"}
				for _, n := range names {
					w.start(n, echo, nil)
				}
				w.net.SetLinks("gateway", "", longFatLite)
				w.apply(names...)
				var open []Session
				for range 60 {
					switch rng.IntN(4) {
					case 0:
						disturb(w, rng, names)
					case 1, 2:
						s, err := w.pool.Open(context.Background(), names[rng.IntN(3)], OpenOptions{Rescue: true, Payload: []byte("x")})
						if err == nil {
							open = append(open, s)
						}
					case 3:
						if len(open) > 0 {
							i := rng.IntN(len(open))
							open[i].Close(CodeNormal)
							open = append(open[:i], open[i+1:]...)
						}
					}
					time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
					synctest.Wait()
					checkInvariants(t, w.pool)
				}
			})
		})
	}
}

// checkInvariants holds at every moment at which nothing is half done.
func checkInvariants(t *testing.T, p *Pool) {
	t.Helper()
	p.inv.Lock()
	defer p.inv.Unlock()
	p.reg.mu.Lock()
	defer p.reg.mu.Unlock()
	p.co.mu.Lock()
	defer p.co.mu.Unlock()
	bound, alive := int64(0), map[uint64]bool{}
	if p.co.active != nil {
		alive[p.co.active.id] = true
	}
	for _, g := range p.co.pending {
		alive[g.id] = true
		if p.co.active != nil && g.id <= p.co.active.id {
			t.Errorf("generation %d is pending behind %d", g.id, p.co.active.id)
		}
	}
	if len(p.co.pending) > p.settings().ReinitParallel {
		t.Errorf("%d cycles at once", len(p.co.pending))
	}
	dialing := 0
	for _, pr := range p.inv.pairs {
		for _, n := range pr.dialing {
			dialing += n
		}
		dialing += pr.refresh
	}
	if dialing > p.inv.dialing || p.inv.dialing > p.settings().ReconnectParallel {
		t.Errorf("%d connects by pair, %d in all, limit %d", dialing, p.inv.dialing, p.settings().ReconnectParallel)
	}
	for _, w := range p.inv.writers {
		bound += int64(w.seat.count)
		listed := 0
		for s := w.seat.first; s != nil; s = s.bound.next {
			listed++
			if s.bound.w != w || !s.bound.registered || p.reg.find(s.id) != s || s.on() != w.link {
				t.Errorf("session %d dangles on writer %d", s.id, w.id)
			}
		}
		if listed != w.seat.count || w.sessions.Load() != int64(listed) {
			t.Errorf("writer %d: %d sessions listed, %d counted", w.id, listed, w.seat.count)
		}
		if (w.seat.count == 0) != !w.seat.idleSince.IsZero() {
			t.Errorf("writer %d: idle since %v with %d sessions", w.id, w.seat.idleSince, w.seat.count)
		}
		if w.contour == contourDraining != !w.drainStart.IsZero() {
			t.Errorf("writer %d: %v since %v", w.id, w.contour, w.drainStart)
		}
		if w.contour == contourDraining && !w.seat.refusing {
			t.Errorf("writer %d drains and takes sessions", w.id)
		}
		if w.contour != contourDraining && !w.stale && !alive[w.generation] {
			t.Errorf("writer %d serves for generation %d, which is gone", w.id, w.generation)
		}
	}
	if open := p.reg.open.Load(); open != bound {
		t.Errorf("%d sessions open, %d bound", open, bound)
	}
}
