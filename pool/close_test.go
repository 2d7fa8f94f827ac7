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

func TestCloseWaitsForSessionsUnderItsDeadline(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		a, b := w.open("n1", OpenOptions{}), w.open("n1", OpenOptions{})
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		done := make(chan error, 1)
		start := time.Now()
		go func() { done <- w.pool.Close(ctx) }()
		settle(time.Second)
		if _, err := w.pool.Open(context.Background(), "n1", OpenOptions{}); !errors.Is(err, ErrPoolClosed) {
			t.Errorf("open while closing: %v", err)
		}
		mustEcho(t, a, []byte("may finish"))
		a.Close(CodeNormal)
		err := <-done
		if err == nil || err.Error() != "pool close: 1 sessions were cut off" {
			t.Errorf("close: %v", err)
		}
		if took := time.Since(start); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("took %v", took)
		}
		wantClose(t, b.Err(), CodeDraining)
		if n := w.pool.Snapshot().SessionsClosed["shutdown"]; n != 1 {
			t.Errorf("shutdown counted %d times", n)
		}
		if err := w.pool.Apply(Map{Revision: 99}); !errors.Is(err, ErrPoolClosed) {
			t.Errorf("apply: %v", err)
		}
		if err := w.pool.Reload(DefaultSettings()); !errors.Is(err, ErrPoolClosed) {
			t.Errorf("reload: %v", err)
		}
		if err := w.pool.Close(context.Background()); err != nil {
			t.Errorf("a second close: %v", err)
		}
	})
}

func TestCloseEndsEarlyWhenAllSessionsDo(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		s := w.open("n1", OpenOptions{})
		time.AfterFunc(3*time.Second, func() { s.Close(CodeNormal) })
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		start := time.Now()
		if err := w.pool.Close(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestCloseAnywhere closes the pool at random moments of a busy life and leaves
// it to the world to find what stayed behind.
func TestCloseAnywhere(t *testing.T) {
	for seed := range uint64(seeds(30)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				rng := rand.New(rand.NewPCG(seed, 5))
				for _, n := range []string{"n1", "n2"} {
					w.start(n, echo, nil)
				}
				link := longFat
				link.Delay = time.Duration(rng.IntN(50)) * time.Millisecond
				w.net.SetLinks("gateway", "", link)
				w.apply("n1")
				var wg sync.WaitGroup
				ctx, cancel := context.WithCancel(context.Background())
				for range 5 {
					wg.Go(func() {
						for ctx.Err() == nil {
							s, err := w.pool.Open(ctx, "n1", OpenOptions{Payload: make([]byte, 5000)})
							if err != nil {
								if errors.Is(err, ErrPoolClosed) {
									return
								}
								continue
							}
							_, _ = s.Recv(ctx)
							s.Close(CodeNormal)
						}
					})
				}
				time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
				w.apply("n1", "n2")
				w.pool.Rotate()
				time.Sleep(time.Duration(rng.IntN(800)) * time.Millisecond)
				if rng.IntN(2) == 0 {
					w.net.Cut("gateway", "")
				}
				_ = w.pool.Close(context.Background())
				cancel()
				wg.Wait()
				synctest.Wait()
				if n := len(w.pool.Snapshot().Writers) + w.pool.Snapshot().DirectOpen; n != 0 {
					t.Errorf("%d connections left", n)
				}
			})
		})
	}
}

func TestCancelledHandlerContext(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		causes := make(chan error, 3)
		w.start("n1", func(ctx context.Context, s Session) {
			<-ctx.Done()
			causes <- s.Err()
		}, nil)
		w.apply("n1")
		settle(time.Second)
		s := w.open("n1", OpenOptions{})
		settle(time.Millisecond)
		s.Close(CodeCancelled)
		wantClose(t, <-causes, CodeCancelled)
		s = w.open("n1", OpenOptions{})
		settle(time.Millisecond)
		s.Close(CodeApplication + 3)
		wantClose(t, <-causes, CodeApplication+3)
		w.open("n1", OpenOptions{})
		settle(time.Millisecond)
		w.net.Cut("gateway", "n1")
		wantClose(t, <-causes, CodeLost)
	})
}

func TestCloseDeliversCancelDiscards(t *testing.T) {
	for _, code := range []CloseCode{CodeNormal, CodeCancelled} {
		inWorld(t, func(s *Settings) { s.FloorBase, s.ShadowWriters = 1, 0 }, func(w *world) {
			link := longFat
			link.Loss, link.Bandwidth = 0, 1<<20
			w.net.SetLinks("gateway", "n1", link)
			got := make(chan int, 1)
			w.start("n1", func(ctx context.Context, s Session) {
				n := 0
				for {
					m, err := s.Recv(context.Background())
					if err != nil {
						wantClose(t, err, code)
						got <- n
						return
					}
					n += len(m)
				}
			}, nil)
			w.apply("n1")
			settle(3 * time.Second)
			s := w.open("n1", OpenOptions{})
			for range 30 {
				if err := s.Send(context.Background(), make([]byte, 100<<10)); err != nil {
					t.Fatal(err)
				}
			}
			s.Close(code)
			n := <-got
			if all := n == 30*100<<10; all != (code == CodeNormal) {
				t.Errorf("%v: %d bytes arrived", code, n)
			}
		})
	}
}
