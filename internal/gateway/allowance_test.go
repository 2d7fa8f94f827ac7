package gateway

import (
	"net/http"
	"testing"
	"time"

	"hecate/internal/control/keys"
)

func TestKeysKeepToTheirOwnLimits(t *testing.T) {
	var a allowances
	now := time.Unix(1_000_000, 0)
	limited := &keys.Record{ID: "a", RequestsPerMinute: 2}
	for i := range 2 {
		if _, refusal := a.take(limited, now); refusal != nil {
			t.Fatalf("request %d: %v", i, refusal)
		}
	}
	_, refusal := a.take(limited, now)
	if refusal == nil || refusal.Status != http.StatusTooManyRequests || refusal.RetryAfter != 30*time.Second {
		t.Fatalf("the third request: %+v, want 429 and half a minute", refusal)
	}
	if _, refusal := a.take(&keys.Record{ID: "b", RequestsPerMinute: 2}, now); refusal != nil {
		t.Errorf("another key pays for it: %v", refusal)
	}
	if _, refusal := a.take(limited, now.Add(refusal.RetryAfter)); refusal != nil {
		t.Errorf("after the time that was named: %v", refusal)
	}
}

func TestKeysKeepToTheirPlaces(t *testing.T) {
	var a allowances
	k := &keys.Record{ID: "a", Concurrent: 1}
	done, refusal := a.take(k, time.Time{})
	if refusal != nil {
		t.Fatal(refusal)
	}
	if _, refusal := a.take(k, time.Time{}); refusal == nil || refusal.Status != http.StatusTooManyRequests {
		t.Fatalf("a second request at the same time: %v, want 429", refusal)
	}
	done()
	if _, refusal := a.take(k, time.Time{}); refusal != nil {
		t.Errorf("the place was not given back: %v", refusal)
	}
}

func TestKeysWithoutLimitsAreNotCounted(t *testing.T) {
	var a allowances
	for range 1000 {
		if _, refusal := a.take(&keys.Record{ID: "a"}, time.Time{}); refusal != nil {
			t.Fatal(refusal)
		}
	}
	if len(a.byKey) != 0 {
		t.Error("memory is held for a key without limits")
	}
}
