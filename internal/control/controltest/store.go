// Package controltest has in-memory versions of the control plane's store and
// bus, for the tests of every room. They keep the real ones' contracts, and
// work in the fake time of testing/synctest.
package controltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"hecate/internal/control"
)

// A Store is a control.Store in memory. The zero value is ready to use.
type Store struct {
	mu struct {
		sync.Mutex
		revision uint64
		entries  map[control.Bucket]map[string]control.Entry
		watchers map[*watcher]bool
		broken   error
	}
}

type watcher struct {
	bucket  control.Bucket
	key     string
	wake    chan struct{} // capacity 1
	pending map[string]control.Update
}

// NewStore returns an empty store.
func NewStore() *Store { return &Store{} }

// Break makes every later operation fail with err; nil mends the store.
func (s *Store) Break(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.broken = err
}

// Get implements control.Store.
func (s *Store) Get(ctx context.Context, b control.Bucket, key string) (control.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readyLocked(ctx); err != nil {
		return control.Entry{}, err
	}
	e, ok := s.mu.entries[b][key]
	if !ok {
		return control.Entry{}, fmt.Errorf("%s/%s: %w", b, key, control.ErrNotFound)
	}
	return clone(e), nil
}

// List implements control.Store.
func (s *Store) List(ctx context.Context, b control.Bucket) ([]control.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readyLocked(ctx); err != nil {
		return nil, err
	}
	return s.listLocked(b), nil
}

func (s *Store) listLocked(b control.Bucket) []control.Entry {
	var out []control.Entry
	for _, e := range s.mu.entries[b] {
		out = append(out, clone(e))
	}
	slices.SortFunc(out, func(x, y control.Entry) int { return strings.Compare(x.Key, y.Key) })
	return out
}

// Create implements control.Store.
func (s *Store) Create(ctx context.Context, b control.Bucket, key string, value []byte) (uint64, error) {
	return s.put(ctx, b, key, value, 0)
}

// CompareAndSet implements control.Store.
func (s *Store) CompareAndSet(ctx context.Context, b control.Bucket, key string, value []byte, revision uint64) (uint64, error) {
	if revision == 0 {
		return 0, fmt.Errorf("%s/%s: revision 0: %w", b, key, control.ErrConflict)
	}
	return s.put(ctx, b, key, value, revision)
}

func (s *Store) put(ctx context.Context, b control.Bucket, key string, value []byte, revision uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readyLocked(ctx); err != nil {
		return 0, err
	}
	if have := s.mu.entries[b][key].Revision; have != revision {
		return 0, fmt.Errorf("%s/%s at revision %d, not %d: %w", b, key, have, revision, control.ErrConflict)
	}
	if s.mu.entries == nil {
		s.mu.entries = map[control.Bucket]map[string]control.Entry{}
	}
	if s.mu.entries[b] == nil {
		s.mu.entries[b] = map[string]control.Entry{}
	}
	s.mu.revision++
	e := control.Entry{Key: key, Value: slices.Clone(value), Revision: s.mu.revision}
	s.mu.entries[b][key] = e
	s.notifyLocked(b, control.Update{Entry: e})
	return e.Revision, nil
}

// Delete implements control.Store.
func (s *Store) Delete(ctx context.Context, b control.Bucket, key string, revision uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readyLocked(ctx); err != nil {
		return err
	}
	e, ok := s.mu.entries[b][key]
	if !ok {
		return fmt.Errorf("%s/%s: %w", b, key, control.ErrNotFound)
	}
	if revision != 0 && e.Revision != revision {
		return fmt.Errorf("%s/%s at revision %d, not %d: %w", b, key, e.Revision, revision, control.ErrConflict)
	}
	delete(s.mu.entries[b], key)
	s.mu.revision++
	s.notifyLocked(b, control.Update{Entry: control.Entry{Key: key, Revision: s.mu.revision}, Deleted: true})
	return nil
}

func (s *Store) readyLocked(ctx context.Context) error {
	if s.mu.broken != nil {
		return s.mu.broken
	}
	return ctx.Err()
}

// Watch implements control.Store.
func (s *Store) Watch(ctx context.Context, b control.Bucket, key string) (<-chan control.Update, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readyLocked(ctx); err != nil {
		return nil, err
	}
	w := &watcher{bucket: b, key: key, wake: make(chan struct{}, 1), pending: map[string]control.Update{}}
	var first []control.Update
	for _, e := range s.listLocked(b) {
		if key == "" || key == e.Key {
			first = append(first, control.Update{Entry: e})
		}
	}
	first = append(first, control.Update{Synced: true})
	if s.mu.watchers == nil {
		s.mu.watchers = map[*watcher]bool{}
	}
	s.mu.watchers[w] = true
	out := make(chan control.Update)
	go s.serve(ctx, w, first, out)
	return out, nil
}

func (s *Store) notifyLocked(b control.Bucket, u control.Update) {
	for w := range s.mu.watchers {
		if w.bucket != b || w.key != "" && w.key != u.Key {
			continue
		}
		w.pending[u.Key] = u
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

func (s *Store) serve(ctx context.Context, w *watcher, batch []control.Update, out chan<- control.Update) {
	defer close(out)
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.mu.watchers, w)
	}()
	for {
		for _, u := range batch {
			u.Entry = clone(u.Entry)
			select {
			case out <- u:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-w.wake:
			batch = s.take(w)
		case <-ctx.Done():
			return
		}
	}
}

func (s *Store) take(w *watcher) []control.Update {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []control.Update
	for _, u := range w.pending {
		out = append(out, u)
	}
	clear(w.pending)
	slices.SortFunc(out, func(x, y control.Update) int { return int(x.Revision) - int(y.Revision) })
	return out
}

func clone(e control.Entry) control.Entry {
	e.Value = slices.Clone(e.Value)
	return e
}
