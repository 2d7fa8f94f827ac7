package poolbench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Options say what to measure and how long. The zero value measures everything in
// about a minute.
type Options struct {
	// Part is the length of one measurement of one contestant in one round; 0
	// means 400 ms. Longer is quieter.
	Part time.Duration
	// Rounds is how often the contestants take turns; 0 means 3. A ratio is the
	// median of its rounds.
	Rounds int
	// Sessions is how many channels send small frames at once, and how many share
	// a connection with the stalled one; 0 means 16.
	Sessions int
	// IdleSessions is how many channels stay open in the memory measurement; 0 means 10,000.
	IdleSessions int
	// Losses is how often connections are lost in the restore measurement; 0 means 5.
	Losses int
	// Only names the parts to run; empty means all of Parts.
	Only []string
	// Progress is told what is being measured; nil is fine.
	Progress func(string)
}

// Names of the parts.
const (
	PartThroughput = "throughput" // 32 KiB messages
	PartSmall      = "small"      // 64 B messages, CPU and allocations per frame
	PartRoundTrip  = "roundtrip"  // 64 B there and back
	PartStall      = "stall"      // a neighbour that never reads
	PartIdle       = "idle"       // memory of idle sessions
	PartRestore    = "restore"    // from loss to restored floor (pool only)
	PartSilence    = "silence"    // detection of a silent peer (pool only)
	PartSwap       = "swap"       // generation swap under load (pool only)
)

// Parts lists all parts in the order in which they run.
var Parts = []string{
	PartThroughput, PartSmall, PartRoundTrip, PartStall, PartIdle, PartRestore, PartSilence, PartSwap,
}

const (
	largeMessage = 32 << 10
	smallMessage = 64
)

// Bounds of waiting; reaching one is a failed measurement, not a result.
const (
	floorTimeout = 30 * time.Second
	closeTimeout = 10 * time.Second
	eventTimeout = 30 * time.Second
)

func (o Options) filled() (Options, error) {
	if o.Part == 0 {
		o.Part = 400 * time.Millisecond
	}
	setDefault(&o.Rounds, 3)
	setDefault(&o.Sessions, 16)
	setDefault(&o.IdleSessions, 10_000)
	setDefault(&o.Losses, 5)
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	for _, p := range o.Only {
		if !slices.Contains(Parts, p) {
			return o, fmt.Errorf("unknown part %q: known are %s", p, strings.Join(Parts, ", "))
		}
	}
	if o.Part < 0 || o.Rounds < 0 || o.Sessions < 2 || o.IdleSessions < 0 || o.Losses < 0 {
		return o, fmt.Errorf("part %v, %d rounds, %d sessions, %d idle sessions, %d losses: need positive numbers and at least 2 sessions",
			o.Part, o.Rounds, o.Sessions, o.IdleSessions, o.Losses)
	}
	return o, nil
}

func setDefault(n *int, def int) {
	if *n == 0 {
		*n = def
	}
}

func (o Options) wants(part string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, part) }
