package pool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestJudgeCoverage(t *testing.T) {
	key := func(g string, f Family) pairKey { return pairKey{g, f} }
	full := func(g string) coverage { return coverage{key(g, IP4), 3, 3, true} }
	weak := func(g string) coverage { return coverage{key(g, IP4), 3, 2, true} }
	dead := func(g string) coverage { return coverage{key(g, IP4), 3, 0, false} }
	for _, tt := range []struct {
		name    string
		ratio   float64
		stale   BindStale
		pairs   []coverage
		want    outcome
		missing int
	}{
		{"empty map", 0.8, BindStaleNever, nil, outcomeActivated, 0},
		{"all covered", 0.8, BindStaleNever, []coverage{full("a"), full("b")}, outcomeActivated, 0},
		{"two of three is below 0.8", 0.8, BindStaleNever, []coverage{full("a"), full("b"), weak("c")}, outcomeCoverage, 1},
		{"small maps favour one missing", 0.8, BindStaleTTL, []coverage{full("a"), full("b"), weak("c")}, outcomeActivated, 1},
		{"but not two", 0.8, BindStaleTTL, []coverage{full("a"), weak("b"), weak("c")}, outcomeCoverage, 2},
		{"nor the only one", 0.8, BindStaleTTL, []coverage{weak("a")}, outcomeCoverage, 1},
		{"nor at ratio 1", 1, BindStaleAlways, []coverage{full("a"), full("b"), weak("c")}, outcomeCoverage, 1},
		{"four of five suffice", 0.8, BindStaleAlways, []coverage{full("a"), full("b"), full("c"), full("d"), dead("e")}, outcomeActivated, 1},
		{"but not without stale writers", 0.8, BindStaleNever, []coverage{full("a"), full("b"), full("c"), full("d"), dead("e")}, outcomeRedundancy, 1},
		{"ratio 0 asks for nothing", 0, BindStaleAlways, []coverage{dead("a"), dead("b")}, outcomeActivated, 2},
		{"an unreachable family beside a good one", 0.8, BindStaleNever, []coverage{full("a"), {key("a", IP6), 3, 0, false}}, outcomeActivated, 0},
		{"a family that worked before", 0.8, BindStaleNever, []coverage{full("a"), {key("a", IP6), 3, 0, true}}, outcomeCoverage, 1},
		{"a dead group counts once", 0.5, BindStaleAlways, []coverage{full("b"), {key("d", IP4), 3, 0, false}, {key("d", IP6), 3, 0, false}}, outcomeActivated, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := DefaultSettings()
			s.MinFreshRatio, s.BindStale = tt.ratio, tt.stale
			got, missing := judgeCoverage(tt.pairs, &s)
			if got != tt.want || len(missing) != tt.missing {
				t.Errorf("got %v with %d missing, want %v with %d", got, len(missing), tt.want, tt.missing)
			}
		})
	}
}

func TestGenerationSwapKeepsSessions(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.start("n2", echo, nil)
		w.apply("n1")
		settle(time.Second)
		s := w.open("n1", OpenOptions{})
		w.apply("n1", "n2")
		settle(time.Second)
		snap := w.pool.Snapshot()
		if snap.Generation.Active != 2 || !snap.Generation.MapCurrent || snap.Commits["activated"] != 2 {
			t.Fatalf("generation %+v, commits %v", snap.Generation, snap.Commits)
		}
		select {
		case <-s.Draining():
		default:
			t.Error("the session does not know that its writer drains")
		}
		mustEcho(t, s, []byte("still here"))
		fresh := w.open("n1", OpenOptions{})
		if fresh.(*session).bound.w.generation != 2 {
			t.Error("a new session met an old writer")
		}
		s.Close(CodeNormal)
		settle(2 * time.Second)
		for _, ws := range w.pool.Snapshot().Writers {
			if ws.Generation != 2 {
				t.Errorf("left over: %+v", ws)
			}
		}
		fresh.Close(CodeNormal)
	})
}

func TestTriggersMerge(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		for _, n := range []string{"n1", "n2", "n3"} {
			w.start(n, echo, nil)
		}
		w.apply("n1")
		settle(50 * time.Millisecond)
		w.apply("n1", "n2")
		settle(50 * time.Millisecond)
		w.apply("n1", "n2", "n3")
		settle(time.Second)
		if g := w.pool.Snapshot().Generation; g.Active != 1 || g.MapRevision != 3 || !g.MapCurrent {
			t.Errorf("%+v: want one cycle for three triggers", g)
		}
	})
}

func TestABAIsRefused(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		for _, n := range []string{"n1", "n2", "n3"} {
			w.start(n, echo, nil)
		}
		w.apply("n3")
		settle(time.Second)
		w.net.Refuse("n2", true) // so that A cannot be covered yet
		w.apply("n1", "n2")      // A
		settle(time.Second)
		first := w.pool.Snapshot().Generation
		if first.Active != 1 || first.Pending != 2 {
			t.Fatalf("%+v: want A warming up", first)
		}
		pendingA := w.pool.co.find(2)
		w.apply("n1")       // B
		w.apply("n1", "n2") // A again
		w.net.Refuse("n2", false)
		w.pool.inv.Lock()
		got, _ := w.pool.tryActivateLocked(pendingA, time.Now(), w.pool.settings(), &effects{})
		w.pool.inv.Unlock()
		if got != outcomeSuperseded {
			t.Errorf("the first A was judged %v", got)
		}
		settle(10 * time.Second)
		g := w.pool.Snapshot()
		if g.Generation.Active == 2 || !g.Generation.MapCurrent || g.Commits["superseded"] == 0 {
			t.Errorf("%+v %v", g.Generation, g.Commits)
		}
	})
}

func TestSameContentsUnderANewRevisionReconnectNothing(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		before := w.pool.Snapshot().Connects["ok"]
		w.apply("n1")
		settle(5 * time.Second)
		snap := w.pool.Snapshot()
		if snap.Connects["ok"] != before || !snap.Generation.MapCurrent || snap.Generation.MapRevision != 2 {
			t.Errorf("%d connects, before %d; %+v", snap.Connects["ok"], before, snap.Generation)
		}
	})
}

func TestStaleMapsAreRefused(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		a := Map{Revision: 5, Groups: map[string]Group{"n1": GroupOf("n1:1")}}
		b := Map{Revision: 5, Groups: map[string]Group{"n2": GroupOf("n2:1")}}
		if err := w.pool.Apply(a); err != nil {
			t.Fatal(err)
		}
		if err := w.pool.Apply(a); err != nil {
			t.Errorf("the same map again: %v", err)
		}
		if err := w.pool.Apply(b); !errors.Is(err, ErrStaleRevision) {
			t.Errorf("other contents under one revision: %v", err)
		}
		b.Revision = 4
		if err := w.pool.Apply(b); !errors.Is(err, ErrStaleRevision) {
			t.Errorf("an older revision: %v", err)
		}
		if _, err := w.pool.Open(context.Background(), "n2", OpenOptions{}); !errors.Is(err, ErrUnknownGroup) {
			t.Errorf("open on a group of a refused map: %v", err)
		}
	})
}

func TestOneDeadGroupHoldsUpNobody(t *testing.T) {
	for _, stale := range []BindStale{BindStaleNever, BindStaleTTL, BindStaleAlways} {
		t.Run(string(stale), func(t *testing.T) {
			inWorld(t, func(s *Settings) { s.BindStale = stale }, func(w *world) {
				var names []string
				for i := range 5 {
					names = append(names, fmt.Sprint("n", i))
					if i > 0 {
						w.start(names[i], echo, nil)
					}
				}
				w.apply(names...)
				settle(5 * time.Second)
				for _, name := range names[1:] {
					start := time.Now()
					s := w.open(name, OpenOptions{})
					mustEcho(t, s, []byte("x"))
					s.Close(CodeNormal)
					if waited := time.Since(start); waited > 0 {
						t.Errorf("%s: waited %v", name, waited)
					}
				}
				active := w.pool.Snapshot().Generation.Active
				if want := stale != BindStaleNever; (active == 1) != want {
					t.Errorf("generation %d active with bind_stale = %s", active, stale)
				}
				if w.pool.Ready("n0").Ready {
					t.Error("the dead group is said to be ready")
				}
				// Membership declares it dead: the rest swaps.
				w.apply(names[1:]...)
				settle(2 * time.Second)
				if g := w.pool.Snapshot().Generation; !g.MapCurrent {
					t.Errorf("%+v: the living did not swap", g)
				}
			})
		})
	}
}

// staleWorld has n1 and n2 up, then a new generation in which n1 is dead.
func staleWorld(t *testing.T, policy BindStale, f func(w *world)) {
	inWorld(t, func(s *Settings) { s.BindStale = policy; s.IdleRefresh = 0 }, func(w *world) {
		w.start("n1", echo, nil)
		w.start("n2", echo, nil)
		w.start("n3", echo, nil)
		w.apply("n1", "n2")
		settle(25 * time.Second)
		w.net.Refuse("n1", true) // old connections live, new ones fail
		w.apply("n1", "n2", "n3")
		settle(time.Second)
		f(w)
	})
}

func TestBindStaleTTL(t *testing.T) {
	staleWorld(t, BindStaleTTL, func(w *world) {
		if g := w.pool.Snapshot().Generation; g.Active != 2 {
			t.Fatalf("%+v: want the swap despite n1", g)
		}
		s := w.open("n1", OpenOptions{Rescue: true})
		mustEcho(t, s, []byte("by a stale writer"))
		s.Close(CodeNormal)
		settle(91 * time.Second)
		if _, err := w.pool.Open(context.Background(), "n1", OpenOptions{Rescue: true}); !errors.Is(err, ErrNoWriter) {
			t.Errorf("after bind_stale_ttl: %v", err)
		}
	})
}

func TestBindStaleAlwaysEndsWithCoverage(t *testing.T) {
	staleWorld(t, BindStaleAlways, func(w *world) {
		settle(10 * time.Minute)
		s := w.open("n1", OpenOptions{Rescue: true})
		mustEcho(t, s, []byte("by a stale writer"))
		w.net.Refuse("n1", false)
		settle(time.Minute)
		mustEcho(t, s, []byte("and it may go on"))
		stale := 0
		for _, ws := range w.pool.Snapshot().Writers {
			if ws.Group == "n1" && ws.Contour != "draining" && ws.Generation < 2 {
				stale++
			}
		}
		if stale != 0 || w.group("n1").Contours["active"] != 3 {
			t.Errorf("%d stale writers still serve beside %v", stale, w.group("n1").Contours)
		}
		s.Close(CodeNormal)
	})
}

func TestBindStaleNeverRefusesTheSwap(t *testing.T) {
	staleWorld(t, BindStaleNever, func(w *world) {
		snap := w.pool.Snapshot()
		if snap.Generation.Active != 1 || snap.Commits["coverage"]+snap.Commits["redundancy"] == 0 {
			t.Errorf("%+v %v", snap.Generation, snap.Commits)
		}
		// The old generation serves on, also the new group does.
		for _, name := range []string{"n1", "n2", "n3"} {
			s := w.open(name, OpenOptions{Rescue: true})
			mustEcho(t, s, []byte("x"))
			s.Close(CodeNormal)
		}
	})
}

func TestPendingGenerationExpires(t *testing.T) {
	inWorld(t, func(s *Settings) { s.PendingMaxAge = seconds(60) }, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1", "n2") // n2 is dead
		settle(3 * time.Minute)
		snap := w.pool.Snapshot()
		if n := snap.Commits["expired"]; n < 2 || n > 3 {
			t.Errorf("%d cycles expired in three minutes at 60 s", n)
		}
		if snap.Generation.Pending == 0 {
			t.Error("no cycle follows the expired one")
		}
		settle(10 * time.Second) // their writers go
		if g := w.group("n1"); g.FloorCurrent != 3 {
			t.Errorf("%+v", g)
		}
	})
}

func TestPeriodicReinit(t *testing.T) {
	inWorld(t, func(s *Settings) { s.ReinitEvery = seconds(60) }, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		settle(5 * time.Minute)
		if g := w.pool.Snapshot().Generation; g.Active < 5 || g.Active > 6 {
			t.Errorf("generation %d after five minutes at 60 s", g.Active)
		}
	})
}

func TestReinitParallelLetsASecondCycleRace(t *testing.T) {
	for _, parallel := range []int{1, 2} {
		inWorld(t, func(s *Settings) { s.ReinitEvery = seconds(20); s.ReinitParallel = parallel }, func(w *world) {
			w.start("n1", echo, nil)
			w.apply("n1")
			settle(10 * time.Second)
			w.net.Refuse("n1", true)
			settle(55 * time.Second)
			w.pool.co.mu.Lock()
			pending := len(w.pool.co.pending)
			w.pool.co.mu.Unlock()
			if pending != parallel {
				t.Errorf("%d cycles warm up, want %d", pending, parallel)
			}
			w.net.Refuse("n1", false)
			settle(time.Minute)
			snap := w.pool.Snapshot()
			if snap.Generation.Active < 2 {
				t.Errorf("no swap afterwards: %+v", snap.Generation)
			}
		})
	}
}

func TestCloseDuringWarmUp(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.net.SetLinks("gateway", "n1", longFat)
		w.apply("n1")
		settle(300 * time.Millisecond) // connects are under way
		if w.group("n1").Dialing == 0 {
			t.Fatal("nothing is under way")
		}
		_ = w.pool.Close(context.Background())
		synctest.Wait()
		if n := len(w.pool.Snapshot().Writers); n != 0 {
			t.Errorf("%d writers after Close", n)
		}
		if n := w.pool.Snapshot().Connects["cancelled"]; n == 0 {
			t.Error("no connect was counted as cancelled")
		}
	})
}

func TestWarmUpIsDroppedWithItsMap(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.start("n2", echo, nil)
		w.apply("n1")
		settle(time.Second)
		w.net.SetLinks("gateway", "n2", longFat)
		w.apply("n1", "n2")
		settle(500 * time.Millisecond)
		w.apply("n1") // before n2 is connected
		settle(10 * time.Second)
		snap := w.pool.Snapshot()
		if snap.Commits["superseded"] != 1 || snap.Generation.Active != 1 || !snap.Generation.MapCurrent {
			t.Errorf("%+v %v", snap.Generation, snap.Commits)
		}
		for _, ws := range snap.Writers {
			if ws.Generation != 1 {
				t.Errorf("left over: %+v", ws)
			}
		}
	})
}

// TestOpensRaceSwaps: sessions are opened and closed while generations follow one
// another, writers are replaced and connections die. A session is either refused
// or it works, or it hears why not.
func TestOpensRaceSwaps(t *testing.T) {
	for seed := range uint64(seeds(20)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inWorld(t, func(s *Settings) { s.Coalesce = 0; s.ForceClose, s.DrainTTL = seconds(10), 0 }, func(w *world) {
				w.start("n1", echo, nil)
				w.start("n2", echo, nil)
				w.net.SetLinks("gateway", "", longFatLite)
				w.apply("n1")
				settle(time.Second)
				ctx, cancel := context.WithCancel(context.Background())
				var wg sync.WaitGroup
				for i := range 8 {
					rng := rand.New(rand.NewPCG(seed, uint64(i)))
					wg.Go(func() {
						for ctx.Err() == nil {
							s, err := w.pool.Open(ctx, "n1", OpenOptions{Rescue: rng.IntN(2) == 0, Payload: []byte("hello")})
							if err != nil {
								_ = sleepOr(ctx, time.Millisecond)
								continue
							}
							if m, err := s.Recv(ctx); err == nil && string(m) != "hello" {
								t.Errorf("got %q", m)
							} else if err != nil && ctx.Err() == nil && !errors.Is(err, ErrSessionClosed) {
								t.Errorf("neither an answer nor a reason: %v", err)
							}
							s.Close(CodeNormal)
							_ = sleepOr(ctx, time.Duration(rng.IntN(20))*time.Millisecond)
						}
					})
				}
				rng := rand.New(rand.NewPCG(seed, 99))
				for i := range 40 {
					w.apply([]string{"n1", "n2"}[:1+i%2]...)
					switch rng.IntN(4) {
					case 0:
						w.pool.Rotate()
					case 1:
						w.net.Cut("gateway", "n1")
					}
					time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
				}
				cancel()
				wg.Wait()
				settle(5 * time.Second)
				checkInvariants(t, w.pool)
				if n := w.pool.Snapshot().SessionsOpen; n != 0 {
					t.Errorf("%d sessions left", n)
				}
			})
		})
	}
}
