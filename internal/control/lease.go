package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// DefaultLeaseTTL is how long a lease outlives its last renewal: long enough
// for a slow disk or a reconnect, short beside the 60 s until a re-plan.
const DefaultLeaseTTL = 5 * time.Second

// renewalsPerTTL lets two renewals fail before the lease is lost.
const renewalsPerTTL = 3

// A Lease is leadership, granted and renewed in the background.
//
// Expiry needs no common clock: a candidate takes a lease over once it has
// seen the same revision for a whole ttl of its own monotonic time, and the
// holder stops vouching for it one ttl after it *began* its last successful
// renewal, which is earlier. The epoch fences what is left (a holder that was
// paused between looking at the clock and writing).
type Lease struct {
	store  Store
	name   string
	holder string
	ttl    time.Duration
	epoch  uint64
	lost   chan struct{}
	stop   context.CancelFunc
	done   chan struct{}

	mu struct {
		sync.Mutex
		revision uint64 // of our newest write; 0 once released
	}
}

type leaseRecord struct {
	Version int    `json:"version"`
	Holder  string `json:"holder"`
	Renewal uint64 `json:"renewal"` // makes every renewal a different value, for people who look
}

// AcquireLease waits until it holds the named lease, or ctx ends. A lease that
// holder itself held before (a restart) is taken over at once. It is renewed
// until ctx ends or Release is called. ttl 0 means DefaultLeaseTTL; all
// candidates must use the same.
func AcquireLease(ctx context.Context, store Store, name, holder string, ttl time.Duration) (*Lease, error) {
	if ttl <= 0 {
		ttl = DefaultLeaseTTL
	}
	seen, since := uint64(0), time.Time{}
	for {
		entry, err := store.Get(ctx, BucketLease, name)
		began := time.Now()
		switch {
		case errors.Is(err, ErrNotFound):
			if rev, err := store.Create(ctx, BucketLease, name, leaseValue(holder, 0)); err == nil {
				return startLease(ctx, store, name, holder, ttl, rev, began), nil
			}
		case err == nil:
			if entry.Revision != seen {
				seen, since = entry.Revision, time.Now()
			}
			if leaseHolder(entry.Value) == holder || time.Since(since) >= ttl {
				if rev, err := store.CompareAndSet(ctx, BucketLease, name, leaseValue(holder, 0), entry.Revision); err == nil {
					return startLease(ctx, store, name, holder, ttl, rev, began), nil
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lease %q: %w", name, ctx.Err())
		case <-time.After(ttl / (2 * renewalsPerTTL)):
		}
	}
}

func leaseValue(holder string, renewal uint64) []byte {
	data, err := json.Marshal(leaseRecord{Version: DocumentVersion, Holder: holder, Renewal: renewal})
	if err != nil {
		panic("BUG: a lease that cannot be written as JSON: " + err.Error())
	}
	return data
}

// leaseHolder reads who holds a lease; nobody does when it is unreadable, so
// that a damaged record expires like any other.
func leaseHolder(value []byte) string {
	var r leaseRecord
	if json.Unmarshal(value, &r) != nil {
		return ""
	}
	return r.Holder
}

func startLease(ctx context.Context, store Store, name, holder string, ttl time.Duration, rev uint64, began time.Time) *Lease {
	ctx, stop := context.WithCancel(ctx)
	l := &Lease{
		store: store, name: name, holder: holder, ttl: ttl, epoch: rev,
		lost: make(chan struct{}), stop: stop, done: make(chan struct{}),
	}
	l.mu.revision = rev
	go l.renew(ctx, began)
	return l
}

// Epoch is the revision at which the lease was taken: every later holder has a
// higher one.
func (l *Lease) Epoch() uint64 { return l.epoch }

// Lost is closed when the lease can no longer be vouched for: renewal failed
// for a whole ttl, somebody else has it, it was released, or its context ended.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Release gives the lease up, so that another may take it at once. It is
// idempotent. It cannot fail in a way that matters: what is not given up
// expires.
func (l *Lease) Release(ctx context.Context) {
	l.stop()
	<-l.done
	l.mu.Lock()
	rev := l.mu.revision
	l.mu.revision = 0
	l.mu.Unlock()
	if rev != 0 {
		_ = l.store.Delete(ctx, BucketLease, l.name, rev)
	}
}

func (l *Lease) renew(ctx context.Context, renewed time.Time) {
	defer close(l.done)
	defer close(l.lost)
	tick := time.NewTicker(l.ttl / renewalsPerTTL)
	defer tick.Stop()
	for n := uint64(1); ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(renewed.Add(l.ttl))):
			return
		case <-tick.C:
		}
		began := time.Now()
		err := l.renewOnce(ctx, n, renewed.Add(l.ttl))
		switch {
		case err == nil:
			renewed = began
		case errors.Is(err, ErrConflict), errors.Is(err, ErrNotFound):
			return
		}
	}
}

func (l *Lease) renewOnce(ctx context.Context, n uint64, deadline time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	l.mu.Lock()
	rev := l.mu.revision
	l.mu.Unlock()
	rev, err := l.store.CompareAndSet(ctx, BucketLease, l.name, leaseValue(l.holder, n), rev)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.mu.revision = rev
	l.mu.Unlock()
	return nil
}
