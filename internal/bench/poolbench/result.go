package poolbench

import (
	"runtime"
	"slices"
	"time"
)

// Result is everything that one run has measured. Parts that did not run are
// absent.
type Result struct {
	At       time.Time     `json:"at"`
	Go       string        `json:"go"`
	Platform string        `json:"platform"`
	Cores    int           `json:"cores"`
	Took     time.Duration `json:"took_ns"`

	Contestants []Contestant `json:"contestants"`
	Restore     *Restore     `json:"restore,omitempty"`
	Silence     *Silence     `json:"silence,omitempty"`
	Swap        *Swap        `json:"swap,omitempty"`
	Ratios      []Ratio      `json:"ratios"`
	// CPULarge is the processor time of bare TLS for one 32 KiB message divided by the
	// pool's, median of the rounds: on a busy machine it says more than throughput.
	CPULarge float64 `json:"cpu_large_ratio,omitempty"`
	// Noise is how far bare TLS, measured the same way each round, disagrees with itself:
	// (fastest - slowest) / median, or how much its connections seem to disturb each other. Above 0.25 the machine was too busy to trust a ratio
	// that lies near its floor.
	Noise float64 `json:"noise"`
	// Faults name measurements that failed.
	Faults []string `json:"faults,omitempty"`
}

// Contestant is one transport's numbers: medians over the rounds.
type Contestant struct {
	Name string `json:"name"`

	Throughput float64 `json:"throughput_bytes_per_s,omitempty"` // payload, one channel, 32 KiB messages

	SmallRate   float64       `json:"small_per_s,omitempty"`             // 64 B messages, all channels together
	CPUPerSmall time.Duration `json:"cpu_per_small_ns,omitempty"`        // both ends and the kernel
	AllocsSmall float64       `json:"allocs_per_small"`                  // both ends
	AllocsLarge float64       `json:"allocs_per_large"`                  // likewise, 32 KiB
	CPUPerLarge time.Duration `json:"cpu_per_large_ns,omitempty"`        // likewise
	P50         time.Duration `json:"round_trip_p50_ns,omitempty"`       // 64 B, one channel
	P99         time.Duration `json:"round_trip_p99_ns,omitempty"`       //
	StallBefore time.Duration `json:"neighbours_p99_ns,omitempty"`       // round trips of all others while nobody stalls
	StallAfter  time.Duration `json:"neighbours_p99_stall_ns,omitempty"` // while one channel never reads
	StallEffect float64       `json:"stall_effect,omitempty"`            // after / before, median of pairs
	IdleBytes   float64       `json:"bytes_per_idle_session,omitempty"`  // heap and stacks, both ends

	rounds map[string][]float64
}

// Restore is the time from the loss of connections to a restored floor.
type Restore struct {
	Losses   int           `json:"losses"`
	Floor    int           `json:"floor"`
	OneP50   time.Duration `json:"one_p50_ns"` // one connection reset
	OneWorst time.Duration `json:"one_worst_ns"`
	AllP50   time.Duration `json:"all_p50_ns"` // every connection reset at once
	AllWorst time.Duration `json:"all_worst_ns"`
	Untold   int           `json:"sessions_not_told"` // sessions on lost connections that had not ended by then
}

// Silence is the time from the last byte of a peer to the end of its connections.
type Silence struct {
	Writers int           `json:"writers"`
	First   time.Duration `json:"first_ns"`
	Last    time.Duration `json:"last_ns"`
}

// Swap is a generation swap under full load.
type Swap struct {
	Sessions  int           `json:"sessions"`
	Lost      int           `json:"lost"`    // sessions that ended without being asked to
	Took      time.Duration `json:"took_ns"` // from the new map to the active generation
	P99Before time.Duration `json:"p99_before_ns"`
	P99During time.Duration `json:"p99_during_ns"`
}

// Ratio compares the pool with another contestant, or with itself.
type Ratio struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Floor float64 `json:"floor"`
	Aim   float64 `json:"aim"`
	// Lower is set when less is better.
	Lower bool `json:"lower_is_better,omitempty"`
}

// Verdict is "aim", "floor" or "below floor".
func (r Ratio) Verdict() string {
	reached := func(mark float64) bool {
		if r.Lower {
			return r.Value <= mark
		}
		return r.Value >= mark
	}
	switch {
	case reached(r.Aim):
		return "aim"
	case reached(r.Floor):
		return "floor"
	default:
		return "below floor"
	}
}

// Held reports whether every ratio is at its floor at least and nothing failed.
func (r *Result) Held() bool {
	return len(r.Faults) == 0 && !slices.ContainsFunc(r.Ratios, func(x Ratio) bool { return x.Verdict() == "below floor" })
}

func newResult() *Result {
	return &Result{
		At: time.Now(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Cores: runtime.GOMAXPROCS(0),
	}
}

// Names of the contestants.
const (
	nameTLS   = "bare TLS"
	nameYamux = "yamux"
	nameGRPC  = "gRPC"
	namePool  = "pool"
)

func (r *Result) contestant(name string) *Contestant {
	for i := range r.Contestants {
		if r.Contestants[i].Name == name {
			return &r.Contestants[i]
		}
	}
	return nil
}

// note keeps one round's value.
func (c *Contestant) note(key string, v float64) {
	if c.rounds == nil {
		c.rounds = map[string][]float64{}
	}
	c.rounds[key] = append(c.rounds[key], v)
}

func (c *Contestant) median(key string) float64 { return median(c.rounds[key]) }

// median of no values is 0.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// spread is (largest - smallest) / median; 0 for fewer than two values.
func spread(v []float64) float64 {
	if len(v) < 2 || median(v) == 0 {
		return 0
	}
	return (slices.Max(v) - slices.Min(v)) / median(v)
}

// percentile is the smallest value that at least the share q of v does not exceed.
func percentile(v []time.Duration, q float64) time.Duration {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	i := int(q*float64(len(s))+0.999999) - 1
	return s[min(max(i, 0), len(s)-1)]
}
