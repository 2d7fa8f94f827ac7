package live

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hecate/internal/report"
)

func picture(pairs ...string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	return out
}

func frame(t *testing.T, b []byte) (f report.Frame) {
	t.Helper()
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestOnlyChangesAreTold(t *testing.T) {
	f := NewFeed()
	f.Set(picture("a", "1", "b", "2"))
	all, now := f.Since(0)
	if got := frame(t, all); !got.Full || len(got.Parts) != 2 {
		t.Errorf("%+v", got)
	}
	f.Set(picture("a", "1", "b", "2"))
	if b, again := f.Since(now); b != nil || again != now {
		t.Errorf("no change, but %s at %d", b, again)
	}
	f.Set(picture("a", "3"))
	change, next := f.Since(now)
	got := frame(t, change)
	if diff := cmp.Diff(picture("a", "3", "b", "null"), got.Parts); diff != "" || got.Full || next != now+1 {
		t.Error(diff, got.Full, next)
	}
	if fresh, _ := f.Since(0); len(frame(t, fresh).Parts) != 1 {
		t.Errorf("who comes new hears of what is gone: %s", fresh)
	}
}

func TestTheBellRingsForNewsOnly(t *testing.T) {
	f := NewFeed()
	bell, stop := f.Watch()
	defer stop()
	<-bell // the first look
	f.Set(picture("a", "1"))
	<-bell
	f.Set(picture("a", "1"))
	select {
	case <-bell:
		t.Error("it rang for nothing")
	default:
	}
	if stop(); f.Watchers() != 0 {
		t.Error("somebody still watches")
	}
}

// Whenever a watcher looks, what it has put together is the picture itself.
func TestWatchersOfAnyPaceSeeTheSame(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	f := NewFeed()
	type watcher struct {
		at   uint64
		have map[string]json.RawMessage
	}
	watchers := make([]watcher, 5)
	for i := range watchers {
		watchers[i].have = map[string]json.RawMessage{}
	}
	for step := range 2000 {
		now := map[string]json.RawMessage{}
		for _, name := range []string{"a", "b", "c", "d"} {
			if rng.Intn(3) > 0 {
				now[name] = json.RawMessage(fmt.Sprint(rng.Intn(4)))
			}
		}
		f.Set(now)
		w := &watchers[rng.Intn(len(watchers))]
		b, at := f.Since(w.at)
		if b != nil {
			for name, body := range frame(t, b).Parts {
				if w.have[name] = body; string(body) == "null" {
					delete(w.have, name)
				}
			}
		}
		w.at = at
		if diff := cmp.Diff(now, w.have); diff != "" {
			t.Fatalf("step %d: %s", step, diff)
		}
	}
}

func TestAPulseIsOneSecond(t *testing.T) {
	var p Pulse
	for range 30 {
		p.Token()
	}
	for _, d := range []time.Duration{30 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond} {
		p.First(d)
	}
	p.Gap(40 * time.Millisecond)
	p.Gap(25 * time.Millisecond)
	twenty, forty := 20.0, 40.0
	want := report.Pulse{TokensPerSecond: 60, FirstTokenMS: &twenty, GapMS: &forty, Running: 2, Queued: 1}
	if diff := cmp.Diff(want, p.Beat(500*time.Millisecond, 2, 1)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(report.Pulse{}, p.Beat(time.Second, 0, 0)); diff != "" {
		t.Error(diff)
	}
	for range 2 * historyLength {
		p.Beat(time.Second, 0, 0)
	}
	if n := len(p.History()); n != historyLength {
		t.Errorf("%d seconds are kept", n)
	}
}
