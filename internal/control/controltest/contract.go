package controltest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"hecate/internal/control"
)

// StoreContract checks that a store keeps what control.Store promises. Every
// implementation's tests call it with an empty store.
func StoreContract(t *testing.T, s control.Store) {
	t.Helper()
	t.Run("revisions", func(t *testing.T) { storeRevisions(t, s) })
	t.Run("names", func(t *testing.T) { storeNames(t, s) })
	t.Run("watch", func(t *testing.T) { storeWatch(t, s) })
	t.Run("watch of one key", func(t *testing.T) { storeWatchKey(t, s) })
}

func storeRevisions(t *testing.T, s control.Store) {
	ctx, b := t.Context(), control.BucketNodes
	_, err := s.Get(ctx, b, "a")
	wantError(t, "get of nothing", err, control.ErrNotFound)
	wantError(t, "delete of nothing", s.Delete(ctx, b, "a", 0), control.ErrNotFound)
	r1, err := s.Create(ctx, b, "a", []byte("1"))
	wantError(t, "create", err, nil)
	_, err = s.Create(ctx, b, "a", []byte("2"))
	wantError(t, "create again", err, control.ErrConflict)
	r2, err := s.CompareAndSet(ctx, b, "a", []byte("3"), r1)
	wantError(t, "set", err, nil)
	_, err = s.CompareAndSet(ctx, b, "a", []byte("4"), r1)
	wantError(t, "set with an old revision", err, control.ErrConflict)
	_, err = s.CompareAndSet(ctx, b, "missing", []byte("4"), 0)
	wantError(t, "set with revision 0", err, control.ErrConflict)
	if e, err := s.Get(ctx, b, "a"); err != nil || string(e.Value) != "3" || e.Revision != r2 || e.Key != "a" {
		t.Errorf("get: %+v, %v", e, err)
	}
	wantError(t, "delete with an old revision", s.Delete(ctx, b, "a", r1), control.ErrConflict)
	wantError(t, "delete", s.Delete(ctx, b, "a", r2), nil)
	_, err = s.Get(ctx, b, "a")
	wantError(t, "get after delete", err, control.ErrNotFound)
	r3, err := s.Create(ctx, b, "a", []byte("5"))
	wantError(t, "create after delete", err, nil)
	if r1 >= r2 || r2 >= r3 {
		t.Errorf("revisions %d, %d, %d do not grow", r1, r2, r3)
	}
	wantError(t, "delete of any revision", s.Delete(ctx, b, "a", 0), nil)
}

func storeNames(t *testing.T, s control.Store) {
	ctx, b := t.Context(), control.BucketModels
	names := []string{"a.b", "a/b", "a=2Eb", "qwen2.5:7b+q4@x", ".hidden", "weiß", "*", ">"}
	for i, name := range names {
		if _, err := s.Create(ctx, b, name, []byte(fmt.Sprint(i))); err != nil {
			t.Fatalf("create %q: %v", name, err)
		}
	}
	entries, err := s.List(ctx, b)
	if err != nil || len(entries) != len(names) {
		t.Fatalf("list: %d entries, %v", len(entries), err)
	}
	for i, name := range names {
		if e, err := s.Get(ctx, b, name); err != nil || string(e.Value) != fmt.Sprint(i) {
			t.Errorf("get %q: %q, %v", name, e.Value, err)
		}
	}
	for i := 1; i < len(entries); i++ {
		if entries[i-1].Key >= entries[i].Key {
			t.Errorf("list is not sorted: %q before %q", entries[i-1].Key, entries[i].Key)
		}
	}
}

func storeWatch(t *testing.T, s control.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	b := control.BucketKeys
	mustCreate(t, s, b, "old", "1")
	mustCreate(t, s, b, "dead", "1")
	wantError(t, "delete", s.Delete(ctx, b, "dead", 0), nil)
	updates, err := s.Watch(ctx, b, "")
	wantError(t, "watch", err, nil)
	wantUpdate(t, updates, "old=1")
	wantUpdate(t, updates, "synced")
	mustCreate(t, s, b, "new", "2")
	wantUpdate(t, updates, "new=2")
	wantError(t, "delete", s.Delete(ctx, b, "old", 0), nil)
	wantUpdate(t, updates, "old deleted")
	cancel()
	for range updates {
	}
}

func storeWatchKey(t *testing.T, s control.Store) {
	b := control.BucketPlan
	updates, err := s.Watch(t.Context(), b, control.PlanKey)
	wantError(t, "watch", err, nil)
	wantUpdate(t, updates, "synced")
	mustCreate(t, s, b, "other", "1")
	mustCreate(t, s, b, control.PlanKey, "2")
	wantUpdate(t, updates, "current=2")
}

func mustCreate(t *testing.T, s control.Store, b control.Bucket, key, value string) {
	t.Helper()
	if _, err := s.Create(t.Context(), b, key, []byte(value)); err != nil {
		t.Fatalf("create %s/%s: %v", b, key, err)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: %v, want %v", what, err, want)
	}
}

func wantUpdate(t *testing.T, updates <-chan control.Update, want string) {
	t.Helper()
	select {
	case u := <-updates:
		got := u.Key + "=" + string(u.Value)
		switch {
		case u.Synced:
			got = "synced"
		case u.Deleted:
			got = u.Key + " deleted"
		}
		if got != want {
			t.Fatalf("update %q, want %q", got, want)
		}
	case <-t.Context().Done():
		t.Fatalf("no update, want %q", want)
	}
}
