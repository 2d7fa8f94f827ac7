package pool

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestDefaultsAreValid(t *testing.T) {
	if err := DefaultSettings().Validate(); err != nil {
		t.Fatal(err)
	}
	if s, err := (Settings{}).orDefault(); err != nil || s != DefaultSettings() {
		t.Errorf("the zero value is not the default: %v", err)
	}
}

// TestEverySettingIsChecked sets each field, one at a time, to something absurd
// and wants it named.
func TestEverySettingIsChecked(t *testing.T) {
	typ := reflect.TypeFor[Settings]()
	for i := range typ.NumField() {
		name := typ.Field(i).Tag.Get("toml")
		if j := typ.Field(i).Tag.Get("json"); j != name {
			t.Errorf("%s: json says %q, toml %q", typ.Field(i).Name, j, name)
		}
		s := DefaultSettings()
		f := reflect.ValueOf(&s).Elem().Field(i)
		switch {
		case f.Kind() == reflect.String:
			f.SetString("nonsense")
		case f.Kind() == reflect.Float64:
			f.SetFloat(math.NaN())
		case f.Kind() == reflect.Struct:
			f.Set(reflect.ValueOf(Span{Min: 2, Max: 1}))
		default:
			f.SetInt(-1)
		}
		err := s.Validate()
		var fault *SettingError
		if !errors.As(err, &fault) || fault.Name != name || fault.Range == "" || fault.Value == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAllFaultsAreListedAtOnce(t *testing.T) {
	s := DefaultSettings()
	s.FloorBase, s.PickSample, s.PingMisses, s.NoWriterWait = 33, 5, 0, millis(49)
	s.MinFreshRatio, s.ReinitParallel, s.Fallback = 1.5, 9, "perhaps"
	err := s.Validate()
	for _, want := range []string{
		"floor_base = 33: allowed is 1..32", "pick_sample = 5: allowed is 2..4", "ping_misses = 0: allowed is 1..10",
		"no_writer_wait = 49ms: allowed is 50ms..1m0s", "min_fresh_ratio = 1.5: allowed is 0..1",
		"reinit_parallel = 9: allowed is 1..8", `fallback = "perhaps": allowed is off, direct`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
}

func TestRefusedSettingsChangeNothing(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		bad := DefaultSettings()
		bad.FloorBase, bad.FloorMin = 7, 0
		if err := w.pool.Reload(bad); err == nil {
			t.Fatal("accepted")
		}
		if w.pool.Snapshot().Settings != DefaultSettings() {
			t.Error("a refused reload left traces")
		}
	})
	if _, err := New(Config{NodeID: "", Settings: Settings{FloorBase: 3}}); err == nil ||
		!strings.Contains(err.Error(), "node id") || !strings.Contains(err.Error(), "TLS is nil") || !strings.Contains(err.Error(), "pick_sample") {
		t.Errorf("not all faults are listed: %v", err)
	}
}

func TestSettingsSurviveText(t *testing.T) {
	s := DefaultSettings()
	s.FlapWindow.Max = 1500 * time.Millisecond
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back Settings
	if err := json.Unmarshal(text, &back); err != nil || back != s {
		t.Errorf("%v\n%s\n%+v", err, text, back)
	}
	if !strings.Contains(string(text), `"flap_window":"500ms..1.5s"`) || !strings.Contains(string(text), `"send_wait":"250ms"`) {
		t.Errorf("%s", text)
	}
	for _, bad := range []string{`{"flap_window":"1s"}`, `{"flap_window":"1..2"}`, `{"send_wait":"soon"}`} {
		if json.Unmarshal([]byte(bad), &back) == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

// The tests below show, for the settings that have no test of their own
// elsewhere, that changing them changes what the pool does.

func TestFloorSettingsMatter(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Settings)
		after  time.Duration
		want   int
	}{
		{"floor_base", func(s *Settings) { s.FloorBase = 5 }, time.Second, 5},
		{"shadow_writers", func(s *Settings) { s.ShadowWriters = 6 }, time.Second, 7},
		{"floor = adaptive", nil, 200 * time.Second, 2},
		{"floor = static", func(s *Settings) { s.Floor = FloorStatic }, 200 * time.Second, 3},
		{"floor_min", func(s *Settings) { s.FloorMin = 1 }, 200 * time.Second, 1},
		{"floor_idle", func(s *Settings) { s.FloorIdle = seconds(300) }, 200 * time.Second, 3},
	} {
		inWorld(t, tt.change, func(w *world) {
			w.start("n1", echo, nil)
			w.apply("n1")
			settle(tt.after)
			if g := w.group("n1"); g.FloorTarget != tt.want || g.FloorCurrent != tt.want {
				t.Errorf("%s: target %d, current %d, want %d", tt.name, g.FloorTarget, g.FloorCurrent, tt.want)
			}
		})
	}
}

func TestFloorGraceMatters(t *testing.T) {
	for _, grace := range []Duration{0, seconds(300)} {
		inWorld(t, func(s *Settings) { s.FloorGrace = grace }, func(w *world) {
			w.start("n1", echo, nil)
			w.apply("n1")
			s := w.open("n1", OpenOptions{})
			s.Close(CodeNormal)
			settle(200 * time.Second)
			if g := w.group("n1"); (g.FloorTarget == 3) != (grace > 0) {
				t.Errorf("grace %v: %+v", grace, g)
			}
		})
	}
}

func TestReconnectSettingsMatter(t *testing.T) {
	tries := func(change func(*Settings)) (n uint64) {
		inWorld(t, func(s *Settings) { s.OutageMode = Off; change(s) }, func(w *world) {
			w.apply("n1")
			settle(2 * time.Minute)
			n = w.group("n1").Tries
		})
		return n
	}
	base := tries(func(*Settings) {})
	if n := tries(func(s *Settings) { s.ReconnectBase = seconds(10) }); n >= base {
		t.Errorf("reconnect_base: %d tries, default %d", n, base)
	}
	if n := tries(func(s *Settings) { s.ReconnectCap = seconds(1) }); n <= base {
		t.Errorf("reconnect_cap: %d tries, default %d", n, base)
	}
	if n := tries(func(s *Settings) { s.ReconnectFastTries = 20 }); n <= base+10 {
		t.Errorf("reconnect_fast_tries: %d tries, default %d", n, base)
	}
	if n := tries(func(s *Settings) { s.OutageMode = On }); n <= base {
		t.Errorf("outage_mode: %d tries, default %d", n, base)
	}
	slow := tries(func(s *Settings) { s.OutageMode = On; s.OutageBackoff = Span{20 * time.Second, 30 * time.Second} })
	fast := tries(func(s *Settings) {
		s.OutageMode = On
		s.OutageBackoff = Span{100 * time.Millisecond, 200 * time.Millisecond}
	})
	if slow >= base || fast < 500 {
		t.Errorf("outage_backoff: %d and %d tries, default %d", slow, fast, base)
	}
}

func TestReconnectParallelMatters(t *testing.T) {
	for _, parallel := range []int{1, 8} {
		inWorld(t, func(s *Settings) { s.ReconnectParallel = parallel }, func(w *world) {
			w.net.SetLinks("gateway", "n1", longFat)
			w.start("n1", echo, nil)
			w.apply("n1")
			settle(300 * time.Millisecond)
			if g := w.group("n1"); g.Dialing != min(parallel, 3) {
				t.Errorf("parallel %d: %d connects under way", parallel, g.Dialing)
			}
		})
	}
}

func TestConnectTimeoutMatters(t *testing.T) {
	for _, limit := range []Duration{millis(300), seconds(5)} {
		inWorld(t, func(s *Settings) { s.ConnectTimeout = limit }, func(w *world) {
			link := longFat
			link.Loss = 0
			w.net.SetLinks("gateway", "n1", link)
			w.start("n1", echo, nil)
			w.apply("n1")
			settle(30 * time.Second)
			if up := w.group("n1").FloorCurrent > 0; up != (limit > seconds(1)) {
				t.Errorf("connect_timeout %v: up is %v", limit, up)
			}
		})
	}
}

func TestPingSettingsMatter(t *testing.T) {
	found := func(change func(*Settings)) (took time.Duration) {
		inWorld(t, change, func(w *world) {
			// The node judges by the same rules, but shall not be first.
			w.start("n1", hold, func(c *ServerConfig) { c.Settings = DefaultSettings(); c.Settings.PingMisses = 10 })
			w.apply("n1")
			settle(30 * time.Second)
			s := w.open("n1", OpenOptions{})
			start := time.Now()
			w.net.SilenceHost("n1", true)
			<-s.Done()
			took = time.Since(start)
		})
		return took
	}
	base := found(nil)
	if d := found(func(s *Settings) { s.PingMisses = 1 }); d >= base {
		t.Errorf("ping_misses 1: found after %v, default %v", d, base)
	}
	if d := found(func(s *Settings) { s.PingMisses = 4 }); d <= base {
		t.Errorf("ping_misses 4: found after %v, default %v", d, base)
	}
	if d := found(func(s *Settings) { s.PingTimeout = millis(1100) }); d <= base {
		t.Errorf("ping_timeout: found after %v, default %v", d, base)
	}
	if d := found(func(s *Settings) { s.PingInterval = seconds(2) }); d <= base {
		t.Errorf("ping_interval: found after %v, default %v", d, base)
	}
}

func TestFlapAndQuarantineSettingsMatter(t *testing.T) {
	rests := func(change func(*Settings)) (quarantined int) {
		inWorld(t, change, func(w *world) {
			w.start("n1", echo, nil)
			w.start("n1b", echo, func(c *ServerConfig) { c.NodeID = "n1" })
			w.applyMap(Map{Groups: map[string]Group{"n1": GroupOf("n1:1", "n1b:1")}})
			settle(5 * time.Second)
			w.net.Cut("gateway", "n1")
			settle(10 * time.Second)
			quarantined = w.group("n1").Quarantined
		})
		return quarantined
	}
	if rests(nil) != 1 {
		t.Error("the default does not quarantine")
	}
	if rests(func(s *Settings) { s.FlapWindow = Span{time.Second, 2 * time.Second} }) != 0 {
		t.Error("flap_window does not matter")
	}
	if rests(func(s *Settings) { s.Quarantine = 0 }) != 0 || rests(func(s *Settings) { s.Quarantine = seconds(5) }) != 0 {
		t.Error("quarantine does not matter")
	}
}

func TestCoalesceMatters(t *testing.T) {
	for _, window := range []Duration{0, seconds(5)} {
		inWorld(t, func(s *Settings) { s.Coalesce = window }, func(w *world) {
			w.start("n1", echo, nil)
			w.apply("n1")
			settle(time.Second)
			if started := w.pool.Snapshot().Generation.Active == 1; started != (window == 0) {
				t.Errorf("coalesce %v: active after a second is %v", window, started)
			}
		})
	}
}
