package admission

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// waitBounds are the upper bounds of the buckets of queue waits, in seconds; one
// more bucket holds the rest. The first is for those who did not wait.
var waitBounds = [...]float64{0, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}

// counts since the start.
type counts struct {
	admitted int64
	again    int64
	gaveWay  int64
	left     int64
	refused  map[Reason]int64
	waits    [len(waitBounds) + 1]int64
	waited   time.Duration
}

func (c *counts) admit(waited time.Duration) {
	c.admitted++
	c.waited += waited
	i, _ := slices.BinarySearch(waitBounds[:], waited.Seconds())
	c.waits[i]++
}

// A Snapshot is the state of all queues at one moment, and what has happened
// since the start.
type Snapshot struct {
	Models   []ModelSnapshot
	Running  int              // answers that hold room
	Queued   int              // requests that wait
	Admitted int64            // requests that were granted, at once or after a wait
	Again    int64            // that were sent back into a queue by a node without room
	GaveWay  int64            // answers that gave their room back in the middle, each time
	Midway   int              // of those queued, answers that had begun
	Left     int64            // whose clients went away while they waited
	Refused  map[Reason]int64 // every reason is there
	Wait     Histogram        // of those admitted
}

// A ModelSnapshot is one model's queue.
type ModelSnapshot struct {
	Model        string
	Running      int
	RunningCells int64 // KV cells reserved on each stage
	Queued       int
	Midway       int // of those queued, answers that had begun
	QueuedCells  int
	Oldest       time.Duration // the longest wait among those who wait now
	Stay         time.Duration // how long an answer holds its room; 0: unknown
	NotReady     error         // what somebody waits for nodes for; nil: nobody does
}

// A Histogram counts durations by upper bounds, the last bucket without one.
type Histogram struct {
	Bounds []float64 // seconds
	Counts []int64   // one more than bounds; not cumulative
	Sum    time.Duration
}

// Snapshot says how things stand.
func (a *Admission) Snapshot() Snapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &a.mu.counts
	s := Snapshot{
		Admitted: c.admitted, Again: c.again, GaveWay: c.gaveWay, Left: c.left, Refused: map[Reason]int64{},
		Wait: Histogram{Bounds: slices.Clone(waitBounds[:]), Counts: slices.Clone(c.waits[:]), Sum: c.waited},
	}
	for _, r := range Reasons() {
		s.Refused[r] = c.refused[r]
	}
	now := time.Now()
	for q := range maps.Values(a.mu.queues) {
		m := q.snapshot(now)
		s.Running += m.Running
		s.Queued += m.Queued
		s.Midway += m.Midway
		s.Models = append(s.Models, m)
	}
	slices.SortFunc(s.Models, func(a, b ModelSnapshot) int { return cmp.Compare(a.Model, b.Model) })
	return s
}

func (q *queue) snapshot(now time.Time) ModelSnapshot {
	m := ModelSnapshot{
		Model: q.model, Running: q.pace.answers, RunningCells: q.pace.cells, Queued: len(q.waiting), QueuedCells: q.cells(),
		Stay: time.Duration(q.pace.stay(now) * float64(time.Second)),
	}
	m.Midway = q.midway(len(q.waiting))
	for _, w := range q.waiting {
		if w.why != nil {
			m.NotReady = w.why
		}
		m.Oldest = max(m.Oldest, now.Sub(w.arrived))
	}
	return m
}
