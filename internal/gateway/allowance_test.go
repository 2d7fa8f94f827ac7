package gateway

import (
	"net/http"
	"testing"
	"time"

	"hecate/internal/control/keys"
	"hecate/internal/gateway/openai"
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

func TestKeysKeepToTheirTokens(t *testing.T) {
	var a allowances
	now := time.Unix(1_000_000, 0)
	k := &keys.Record{ID: "a", TokensPerMinute: 600}
	ask := func(at time.Time) *openai.Error {
		done, refusal := a.take(k, at)
		if refusal == nil {
			done()
		}
		return refusal
	}
	if refusal := ask(now); refusal != nil {
		t.Fatal(refusal)
	}
	a.spend(k, 1500, now) // more than a minute's worth: it is owed
	refusal := ask(now)
	if refusal == nil || refusal.Status != http.StatusTooManyRequests {
		t.Fatalf("%v, want 429", refusal)
	}
	if want := 90100 * time.Millisecond; refusal.RetryAfter != want {
		t.Errorf("come again in %s, want %s", refusal.RetryAfter, want)
	}
	if refusal := ask(now.Add(refusal.RetryAfter - time.Second)); refusal == nil {
		t.Error("let in before its time")
	}
	if refusal := ask(now.Add(refusal.RetryAfter)); refusal != nil {
		t.Errorf("after the time that was named: %v", refusal)
	}
}

func TestClientsAreToldWhatTheyHaveLeft(t *testing.T) {
	var a allowances
	now := time.Unix(1_000_000, 0)
	k := &keys.Record{ID: "a", RequestsPerMinute: 60, TokensPerMinute: 6000}
	if _, refusal := a.take(k, now); refusal != nil {
		t.Fatal(refusal)
	}
	a.spend(k, 100, now)
	h := http.Header{}
	a.head(k, h, now)
	want := map[string]string{
		"X-Ratelimit-Limit-Requests": "60", "X-Ratelimit-Remaining-Requests": "59", "X-Ratelimit-Reset-Requests": "1s",
		"X-Ratelimit-Limit-Tokens": "6000", "X-Ratelimit-Remaining-Tokens": "5900", "X-Ratelimit-Reset-Tokens": "1s",
	}
	for name, v := range want {
		if h.Get(name) != v {
			t.Errorf("%s: %q, want %q", name, h.Get(name), v)
		}
	}
	if len(h) != len(want) {
		t.Errorf("%v", h)
	}
	unlimited := http.Header{}
	a.head(&keys.Record{ID: "b", Concurrent: 3}, unlimited, now)
	if len(unlimited) != 0 {
		t.Errorf("limits that a key does not have: %v", unlimited)
	}
}

func TestResetsAreWorded(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0ms", 120 * time.Millisecond: "120ms", time.Second: "1s", 6 * time.Minute: "6m0s"} {
		if got := resetIn(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

func TestKeysAreForTheirModels(t *testing.T) {
	var none *bound
	all, some := &bound{record: &keys.Record{}}, &bound{record: &keys.Record{Models: []string{"a/b", "c"}}}
	for _, c := range []struct {
		b     *bound
		model string
		may   bool
	}{{none, "x", true}, {all, "x", true}, {some, "a/b", true}, {some, "c", true}, {some, "a", false}, {some, "", false}} {
		if err := c.b.mayAsk(c.model); (err == nil) != c.may {
			t.Errorf("%q: %v", c.model, err)
		}
	}
	if none.names() || all.names() || !some.names() {
		t.Error("who is bound to models")
	}
	none.spend(5) // nobody to charge
}
