package pool

import (
	"errors"
	"fmt"
	"time"
)

// SettingError is one setting out of range.
type SettingError struct {
	Name  string // as in the configuration file
	Value string
	Range string // what is allowed, for people
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("%s = %s: allowed is %s", e.Name, e.Value, e.Range)
}

// maxDuration bounds every duration setting: a typo such as 5000h should not
// be taken for a policy, and sums of settings must not overflow.
const maxDuration = 30 * 24 * time.Hour

// faults gathers what is wrong, so that all of it is reported at once.
type faults []error

func (f *faults) add(name string, value any, allowed string) {
	*f = append(*f, &SettingError{Name: name, Value: fmt.Sprint(value), Range: allowed})
}

func (f *faults) whole(name string, v, low, high int) {
	if v < low || v > high {
		f.add(name, v, fmt.Sprintf("%d..%d", low, high))
	}
}

func (f *faults) duration(name string, v Duration, low, high time.Duration) {
	if v.D() < low || v.D() > high {
		f.add(name, v, fmt.Sprintf("%v..%v", low, high))
	}
}

// orOff is for durations where 0 switches something off.
func (f *faults) orOff(name string, v Duration, low, high time.Duration) {
	if v != 0 && (v.D() < low || v.D() > high) {
		f.add(name, v, fmt.Sprintf("0 or %v..%v", low, high))
	}
}

func (f *faults) span(name string, v Span) {
	if v.Min <= 0 || v.Max < v.Min || v.Max > maxDuration {
		f.add(name, v, fmt.Sprintf("1ns..%v with the smaller one first", maxDuration))
	}
}

func oneOf[T ~string](f *faults, name string, v T, allowed ...T) {
	text := ""
	for i, a := range allowed {
		if v == a {
			return
		}
		if i > 0 {
			text += ", "
		}
		text += string(a)
	}
	f.add(name, fmt.Sprintf("%q", string(v)), text)
}

// Validate lists every setting out of range, each as a *SettingError.
func (s Settings) Validate() error {
	var f faults
	s.validateFloors(&f)
	s.validateLinks(&f)
	s.validateGenerations(&f)
	s.validateQueues(&f)
	if err := errors.Join(f...); err != nil {
		return fmt.Errorf("pool settings:\n%w", err)
	}
	return nil
}

func (s Settings) validateFloors(f *faults) {
	oneOf(f, "floor", s.Floor, FloorStatic, FloorAdaptive)
	f.whole("floor_base", s.FloorBase, 1, 32)
	f.whole("floor_min", s.FloorMin, 1, 32)
	f.duration("floor_idle", s.FloorIdle, 1, maxDuration)
	f.duration("floor_grace", s.FloorGrace, 0, maxDuration)
	f.whole("shadow_writers", s.ShadowWriters, 0, 32)
	f.whole("max_writers_per_core", s.MaxWritersPerCore, 1, 1<<20)
	f.whole("max_writers", s.MaxWriters, 1, 1<<20)
}

func (s Settings) validateLinks(f *faults) {
	f.duration("reconnect_base", s.ReconnectBase, time.Millisecond, maxDuration)
	f.duration("reconnect_cap", s.ReconnectCap, max(s.ReconnectBase.D(), time.Millisecond), maxDuration)
	f.whole("reconnect_fast_tries", s.ReconnectFastTries, 1, 1000)
	f.whole("reconnect_parallel", s.ReconnectParallel, 1, 1024)
	f.duration("connect_timeout", s.ConnectTimeout, time.Millisecond, time.Minute)
	f.duration("ping_interval", s.PingInterval, 10*time.Millisecond, time.Minute)
	f.duration("ping_timeout", s.PingTimeout, time.Millisecond, maxPingTimeout)
	f.whole("ping_misses", s.PingMisses, 1, 10)
	f.orOff("probe_timeout", s.ProbeTimeout, 10*time.Millisecond, maxPingTimeout)
	f.orOff("idle_refresh", s.IdleRefresh, time.Millisecond, maxDuration)
	f.span("flap_window", s.FlapWindow)
	f.orOff("quarantine", s.Quarantine, time.Millisecond, maxDuration)
	oneOf(f, "outage_mode", s.OutageMode, On, Off)
	f.span("outage_backoff", s.OutageBackoff)
	f.duration("lost_after", s.LostAfter, 0, 10*time.Second)
}

func (s Settings) validateGenerations(f *faults) {
	f.orOff("reinit_every", s.ReinitEvery, time.Second, maxDuration)
	f.whole("reinit_parallel", s.ReinitParallel, 1, 8)
	f.duration("coalesce", s.Coalesce, 0, time.Minute)
	f.duration("pending_max_age", s.PendingMaxAge, time.Second, maxDuration)
	if !(s.MinFreshRatio >= 0 && s.MinFreshRatio <= 1) { // also refuses NaN
		f.add("min_fresh_ratio", s.MinFreshRatio, "0..1")
	}
	oneOf(f, "bind_stale", s.BindStale, BindStaleNever, BindStaleTTL, BindStaleAlways)
	f.duration("bind_stale_ttl", s.BindStaleTTL, time.Millisecond, maxDuration)
	f.orOff("drain_ttl", s.DrainTTL, time.Millisecond, maxDuration)
	f.orOff("force_close", s.ForceClose, time.Millisecond, maxDuration)
	f.whole("drain_threshold", s.DrainThreshold, 0, 1<<20)
}

func (s Settings) validateQueues(f *faults) {
	f.whole("session_queue", s.SessionQueue, 1, 65536)
	f.whole("session_window", s.SessionWindow, 64<<10, 64<<20)
	f.whole("writer_queue", s.WriterQueue, 16, 1<<20)
	f.whole("writer_queue_bytes", s.WriterQueueBytes, 64<<10, 1<<30)
	f.duration("send_wait", s.SendWait, time.Millisecond, time.Minute)
	oneOf(f, "fair_share", s.FairShare, On, Off)
	oneOf(f, "pick", s.Pick, PickP2C, PickSorted)
	f.whole("pick_sample", s.PickSample, 2, 4)
	f.duration("no_writer_wait", s.NoWriterWait, 50*time.Millisecond, time.Minute)
	oneOf(f, "fallback", s.Fallback, FallbackOff, FallbackDirect)
}

// orDefault resolves the zero value of Settings and checks the rest.
func (s Settings) orDefault() (Settings, error) {
	if s == (Settings{}) {
		return DefaultSettings(), nil
	}
	return s, s.Validate()
}
