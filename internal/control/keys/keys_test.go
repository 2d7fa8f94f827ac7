package keys

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/controltest"
)

// withRing runs a test in fake time with a ring that knows everything.
func withRing(t *testing.T, test func(context.Context, *controltest.Store, *Ring)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		store := controltest.NewStore()
		ring := NewRing(store, nil)
		done := make(chan error, 1)
		go func() { done <- ring.Run(ctx) }()
		<-ring.Ready()
		test(ctx, store, ring)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAKeyLivesUntilItIsRevoked(t *testing.T) {
	withRing(t, func(ctx context.Context, store *controltest.Store, ring *Ring) {
		if !ring.Empty() {
			t.Error("a key from nowhere")
		}
		key, rec, err := Create(ctx, store, Options{Note: "phone", RequestsPerMinute: 60})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got, err := ring.Check(key)
		if err != nil || got.ID != rec.ID || got.Note != "phone" || got.RequestsPerMinute != 60 {
			t.Errorf("%+v, %v", got, err)
		}
		for _, other := range []string{"", "sk-hecate-", key + "a", key[:len(key)-1], strings.ToUpper(key), "Bearer " + key} {
			if _, err := ring.Check(other); !errors.Is(err, ErrUnknown) {
				t.Errorf("%q: %v", other, err)
			}
		}
		if err := Revoke(ctx, store, rec.ID); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := ring.Check(key); !errors.Is(err, ErrUnknown) {
			t.Errorf("revoked: %v", err)
		}
		if err := Revoke(ctx, store, rec.ID); !errors.Is(err, ErrUnknown) {
			t.Errorf("revoked twice: %v", err)
		}
	})
}

func TestAKeyExpires(t *testing.T) {
	withRing(t, func(ctx context.Context, store *controltest.Store, ring *Ring) {
		key, _, err := Create(ctx, store, Options{Life: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := ring.Check(key); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		if _, err := ring.Check(key); !errors.Is(err, ErrExpired) {
			t.Errorf("after an hour: %v", err)
		}
	})
}

func TestTheStoreHoldsNoSecret(t *testing.T) {
	withRing(t, func(ctx context.Context, store *controltest.Store, ring *Ring) {
		key, rec, err := Create(ctx, store, Options{})
		if err != nil {
			t.Fatal(err)
		}
		entries, err := store.List(ctx, control.BucketKeys)
		if err != nil || len(entries) != 1 {
			t.Fatal(entries, err)
		}
		if strings.Contains(string(entries[0].Value), strings.TrimPrefix(key, prefix)) {
			t.Error("the key stands in the store")
		}
		if list, err := List(ctx, store); err != nil || len(list) != 1 || !reflect.DeepEqual(list[0], rec) {
			t.Errorf("list: %+v, %v", list, err)
		}
	})
}

func TestOddKeysAreNotMade(t *testing.T) {
	for _, o := range []Options{{Note: "a\nb"}, {Note: strings.Repeat("x", 300)}, {Life: -1}, {RequestsPerMinute: -1}, {Concurrent: -5}} {
		if _, _, err := Create(t.Context(), controltest.NewStore(), o); err == nil {
			t.Errorf("%+v made a key", o)
		}
	}
}

func TestDamagedRecordsAreNoKeys(t *testing.T) {
	withRing(t, func(ctx context.Context, store *controltest.Store, ring *Ring) {
		for name, text := range map[string]string{"api/a": "{", "api/b": `{"version":1}`, "api/c": `{"version":9}`, "join/x": "{}"} {
			if _, err := store.Create(ctx, control.BucketKeys, name, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if !ring.Empty() {
			t.Error("a damaged record became a key")
		}
	})
}
