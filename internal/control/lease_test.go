package control_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/controltest"
)

func acquire(t *testing.T, ctx context.Context, s control.Store, holder string) *control.Lease { //nolint:revive // t first, as everywhere
	t.Helper()
	l, err := control.AcquireLease(ctx, s, "planner", holder, 0)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func lost(l *control.Lease) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}

func TestALeaseIsKeptWhileItsHolderLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := controltest.NewStore()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a := acquire(t, ctx, s, "a")
		waiting, giveUp := context.WithTimeout(ctx, time.Minute)
		defer giveUp()
		if _, err := control.AcquireLease(waiting, s, "planner", "b", 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second holder: %v", err)
		}
		if lost(a) {
			t.Error("it was lost though it was renewed")
		}
		a.Release(ctx)
		began := time.Now()
		b := acquire(t, ctx, s, "b")
		if waited := time.Since(began); waited > time.Second || b.Epoch() <= a.Epoch() {
			t.Errorf("after a release: waited %s, epochs %d then %d", waited, a.Epoch(), b.Epoch())
		}
		if !lost(a) {
			t.Error("a released lease is not lost")
		}
		a.Release(ctx)
		b.Release(ctx)
	})
}

func TestALeaseIsLostBeforeAnotherCanHaveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := controltest.NewStore()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a := acquire(t, ctx, s, "a")
		// The holder cannot reach the store any more; the candidate can.
		cut := &oneSided{Store: s}
		a.Release(ctx)
		a, err := control.AcquireLease(ctx, cut, "planner", "a", 0)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		cut.broken.Store(true)
		began := time.Now()
		b := acquire(t, ctx, s, "b")
		waited := time.Since(began)
		if !lost(a) {
			t.Errorf("two holders after %s", waited)
		}
		if waited > 2*control.DefaultLeaseTTL || b.Epoch() <= a.Epoch() {
			t.Errorf("waited %s, epochs %d then %d", waited, a.Epoch(), b.Epoch())
		}
		b.Release(ctx)
	})
}

func TestARestartedHolderTakesItsLeaseOverAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := controltest.NewStore()
		before, kill := context.WithCancel(t.Context())
		a := acquire(t, before, s, "a")
		kill()
		<-a.Lost()
		began := time.Now()
		again := acquire(t, t.Context(), s, "a")
		if waited := time.Since(began); waited != 0 || again.Epoch() <= a.Epoch() {
			t.Errorf("waited %s, epochs %d then %d", waited, a.Epoch(), again.Epoch())
		}
		again.Release(t.Context())
	})
}

// oneSided is a store that only one side loses.
type oneSided struct {
	control.Store
	broken atomic.Bool
}

func (o *oneSided) CompareAndSet(ctx context.Context, b control.Bucket, key string, value []byte, rev uint64) (uint64, error) {
	if o.broken.Load() {
		return 0, errors.New("cable pulled")
	}
	return o.Store.CompareAndSet(ctx, b, key, value, rev)
}
