package keys

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"hecate/internal/control"
)

// A Ring checks keys from memory and follows the store. A gateway that lost
// the store goes on with what it knows.
type Ring struct {
	store control.Store
	log   *slog.Logger
	known atomic.Pointer[map[string]*Record] // by id; immutable
	ready chan struct{}                      // closed when the store has told everything once
}

// NewRing returns a ring that knows no key until Run.
func NewRing(store control.Store, log *slog.Logger) *Ring {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &Ring{store: store, log: log, ready: make(chan struct{})}
	r.known.Store(&map[string]*Record{})
	return r
}

// Ready is closed once the ring knows every key.
func (r *Ring) Ready() <-chan struct{} { return r.ready }

// Empty reports whether there is no key at all.
func (r *Ring) Empty() bool { return len(*r.known.Load()) == 0 }

// Check finds a key's record, or says why it is refused: ErrUnknown,
// ErrExpired. The record is shared and must not be changed.
func (r *Ring) Check(key string) (*Record, error) {
	if !strings.HasPrefix(key, prefix) {
		return nil, ErrUnknown
	}
	hash := hashOf(key)
	record := (*r.known.Load())[hash[:idDigits]]
	if record == nil {
		return nil, ErrUnknown
	}
	return record, record.check(hash, time.Now())
}

// Run follows the store until ctx ends.
func (r *Ring) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	updates, err := r.store.Watch(ctx, control.BucketKeys, "")
	if err != nil {
		return fmt.Errorf("watching the API keys: %w", err)
	}
	for u := range updates {
		r.take(u)
	}
	return nil
}

func (r *Ring) take(u control.Update) {
	if u.Synced {
		select {
		case <-r.ready:
		default:
			close(r.ready)
		}
		return
	}
	id, ok := strings.CutPrefix(u.Key, storeKey)
	if !ok {
		return
	}
	next := maps.Clone(*r.known.Load())
	if u.Deleted {
		delete(next, id)
	} else {
		record, err := decode(u.Value)
		if err != nil || record.ID != id {
			r.log.Warn("unreadable API key", "id", id, "error", err)
			return
		}
		next[id] = &record
	}
	r.known.Store(&next)
}
