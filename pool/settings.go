package pool

import (
	"encoding"
	"errors"
	"fmt"
	"strings"
	"time"
)

// FloorMode chooses how many writers a group should have.
type FloorMode string

// Floor modes.
const (
	FloorStatic   FloorMode = "static"   // the static requirement, always
	FloorAdaptive FloorMode = "adaptive" // less while a group is idle
)

// Pick chooses among a group's writers for a new session.
type Pick string

// Selection policies.
const (
	PickP2C    Pick = "p2c"    // the best of a few taken at random
	PickSorted Pick = "sorted" // the best of all
)

// BindStale says what happens to a group that a new generation does not cover.
type BindStale string

// Stale policies.
const (
	BindStaleNever  BindStale = "never"  // such a generation is refused
	BindStaleTTL    BindStale = "ttl"    // its old writers take sessions for bind_stale_ttl more
	BindStaleAlways BindStale = "always" // its old writers take sessions until it is covered
)

// Fallback says what to do beside the pool.
type Fallback string

// Fallback modes.
const (
	FallbackOff    Fallback = "off"
	FallbackDirect Fallback = "direct" // one dedicated connection per session
)

// Switch is an on/off setting.
type Switch string

// The two positions of a Switch.
const (
	On  Switch = "on"
	Off Switch = "off"
)

// Duration is a time.Duration that reads and prints as "1.5s" in
// configuration files.
type Duration time.Duration

// D is the value as a time.Duration.
func (d Duration) D() time.Duration { return time.Duration(d) }

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText accepts what time.ParseDuration does.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("duration %q: need something like 500ms or 1m30s", text)
	}
	*d = Duration(v)
	return nil
}

// Span is a range of durations, written "500ms..20s".
type Span struct{ Min, Max time.Duration }

func (s Span) String() string { return s.Min.String() + ".." + s.Max.String() }

// MarshalText implements encoding.TextMarshaler.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText accepts two durations joined by "..".
func (s *Span) UnmarshalText(text []byte) error {
	low, high, ok := strings.Cut(string(text), "..")
	if !ok {
		return fmt.Errorf("span %q: need two durations such as 500ms..20s", text)
	}
	var a, b Duration
	if err := errors.Join(a.UnmarshalText([]byte(low)), b.UnmarshalText([]byte(high))); err != nil {
		return fmt.Errorf("span %q: %w", text, err)
	}
	*s = Span{Min: a.D(), Max: b.D()}
	return nil
}

var (
	_ encoding.TextUnmarshaler = (*Duration)(nil)
	_ encoding.TextUnmarshaler = (*Span)(nil)
)

// Settings is the [pool] section: every policy of the pool. Start from
// DefaultSettings and change what must differ; only the zero value as a whole
// stands for the defaults, because 0 is a meaningful value of many fields.
// docs/pool.md describes each at length.
type Settings struct {
	Floor             FloorMode `json:"floor" toml:"floor"`
	FloorBase         int       `json:"floor_base" toml:"floor_base"`                     // writers of a group in use, 1..32
	FloorMin          int       `json:"floor_min" toml:"floor_min"`                       // writers of an idle group, 1..32; 1 does not survive a loss
	FloorIdle         Duration  `json:"floor_idle" toml:"floor_idle"`                     // idle for so long: floor may fall; > 0
	FloorGrace        Duration  `json:"floor_grace" toml:"floor_grace"`                   // floor is held so long after the last session left; >= 0
	ShadowWriters     int       `json:"shadow_writers" toml:"shadow_writers"`             // spare writers of a one-endpoint group, 0..32
	MaxWritersPerCore int       `json:"max_writers_per_core" toml:"max_writers_per_core"` // > 0
	MaxWriters        int       `json:"max_writers" toml:"max_writers"`                   // > 0; floor_min outranks both caps

	ReconnectBase      Duration `json:"reconnect_base" toml:"reconnect_base"` // first slow pause, doubled per failure; > 0
	ReconnectCap       Duration `json:"reconnect_cap" toml:"reconnect_cap"`   // longest pause; >= reconnect_base
	ReconnectFastTries int      `json:"reconnect_fast_tries" toml:"reconnect_fast_tries"`
	ReconnectParallel  int      `json:"reconnect_parallel" toml:"reconnect_parallel"` // simultaneous connects of the whole pool, >= 1
	ConnectTimeout     Duration `json:"connect_timeout" toml:"connect_timeout"`       // TCP, TLS and hello together; > 0
	PingInterval       Duration `json:"ping_interval" toml:"ping_interval"`           // > 0
	PingTimeout        Duration `json:"ping_timeout" toml:"ping_timeout"`             // 1ms..1.1s
	PingMisses         int      `json:"ping_misses" toml:"ping_misses"`               // 1..10
	ProbeTimeout       Duration `json:"probe_timeout" toml:"probe_timeout"`           // a suspected peer may take so long, or what it took before; 10ms..1.1s, 0 = off
	IdleRefresh        Duration `json:"idle_refresh" toml:"idle_refresh"`             // replace a writer idle for so long; 0 = off
	FlapWindow         Span     `json:"flap_window" toml:"flap_window"`               // a writer that lived so long was flapping
	Quarantine         Duration `json:"quarantine" toml:"quarantine"`                 // a flapping endpoint rests so long; 0 = off
	OutageMode         Switch   `json:"outage_mode" toml:"outage_mode"`
	OutageBackoff      Span     `json:"outage_backoff" toml:"outage_backoff"`
	LostAfter          Duration `json:"lost_after" toml:"lost_after"` // a peer that ended every connection and answers no new one is lost then, or after four round trips if that is more; 0..10s

	ReinitEvery    Duration  `json:"reinit_every" toml:"reinit_every"`       // periodic generations; 0 = off
	ReinitParallel int       `json:"reinit_parallel" toml:"reinit_parallel"` // warm-up cycles at once, 1..8
	Coalesce       Duration  `json:"coalesce" toml:"coalesce"`               // triggers within it merge; >= 0
	PendingMaxAge  Duration  `json:"pending_max_age" toml:"pending_max_age"` // > 0
	MinFreshRatio  float64   `json:"min_fresh_ratio" toml:"min_fresh_ratio"` // 0..1
	BindStale      BindStale `json:"bind_stale" toml:"bind_stale"`
	BindStaleTTL   Duration  `json:"bind_stale_ttl" toml:"bind_stale_ttl"`   // > 0
	DrainTTL       Duration  `json:"drain_ttl" toml:"drain_ttl"`             // only warns; 0 = off
	ForceClose     Duration  `json:"force_close" toml:"force_close"`         // 0 = 300s
	DrainThreshold int       `json:"drain_threshold" toml:"drain_threshold"` // 0 = off

	SessionQueue     int      `json:"session_queue" toml:"session_queue"`           // messages, 1..65536
	SessionWindow    int      `json:"session_window" toml:"session_window"`         // bytes, 64 KiB..64 MiB
	WriterQueue      int      `json:"writer_queue" toml:"writer_queue"`             // frames, 16..1048576
	WriterQueueBytes int      `json:"writer_queue_bytes" toml:"writer_queue_bytes"` // bytes, 64 KiB..1 GiB
	SendWait         Duration `json:"send_wait" toml:"send_wait"`                   // > 0
	FairShare        Switch   `json:"fair_share" toml:"fair_share"`

	Pick         Pick     `json:"pick" toml:"pick"`
	PickSample   int      `json:"pick_sample" toml:"pick_sample"`       // 2..4
	NoWriterWait Duration `json:"no_writer_wait" toml:"no_writer_wait"` // 50ms..60s
	Fallback     Fallback `json:"fallback" toml:"fallback"`
}

// DefaultSettings are the published defaults.
func DefaultSettings() Settings {
	return Settings{
		Floor: FloorAdaptive, FloorBase: 3, FloorMin: 2, FloorIdle: seconds(90), FloorGrace: seconds(180),
		ShadowWriters: 1, MaxWritersPerCore: 64, MaxWriters: 256,
		ReconnectBase: millis(500), ReconnectCap: seconds(30), ReconnectFastTries: 4, ReconnectParallel: 8,
		ConnectTimeout: millis(1200), PingInterval: millis(500), PingTimeout: millis(500), PingMisses: 2, ProbeTimeout: millis(250),
		IdleRefresh: seconds(45), FlapWindow: Span{500 * time.Millisecond, 20 * time.Second}, Quarantine: seconds(25),
		OutageMode: On, OutageBackoff: Span{250 * time.Millisecond, 3 * time.Second}, LostAfter: millis(250),
		ReinitParallel: 1, Coalesce: millis(200), PendingMaxAge: seconds(1800), MinFreshRatio: 0.8,
		BindStale: BindStaleNever, BindStaleTTL: seconds(90), DrainTTL: seconds(90), DrainThreshold: 32,
		SessionQueue: 768, SessionWindow: 4 << 20, WriterQueue: 4096, WriterQueueBytes: 32 << 20,
		SendWait: millis(250), FairShare: Off,
		Pick: PickP2C, PickSample: 3, NoWriterWait: seconds(3), Fallback: FallbackOff,
	}
}

func seconds(n int) Duration { return Duration(time.Duration(n) * time.Second) }
func millis(n int) Duration  { return Duration(time.Duration(n) * time.Millisecond) }
