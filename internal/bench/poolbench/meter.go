package poolbench

import (
	"runtime"
	"time"

	"hecate/internal/bench/measure"
)

// usage is what the process has used so far: both ends of every measurement run in
// it, and the kernel's work for its sockets counts as its own.
type usage struct {
	at     time.Time
	cpu    time.Duration
	allocs uint64
}

func readUsage() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{at: time.Now(), cpu: measure.CPUTime(), allocs: m.Mallocs}
}

// since returns the difference to an earlier reading.
func (u usage) since(before usage) (wall, cpu time.Duration, allocs uint64) {
	return u.at.Sub(before.at), u.cpu - before.cpu, u.allocs - before.allocs
}

// heldMemory is the heap in use and all stacks, after a full collection.
func heldMemory() uint64 {
	// Twice: what sync.Pool holds survives the first collection.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
