package engine

import "time"

// timing is what a group's passes showed.
type timing struct {
	passes, rows uint64
	decode       time.Duration // moving average of a pass with one row per session
	perRow       time.Duration // moving average per row of passes with long inputs
	batch        float64       // moving average of rows in decoding passes
	lastStream   time.Time     // end of the last pass with a step of one row

	// Gathering: after a pass, its sessions send their next tokens within a
	// short time of each other. Starting with the first would split them into
	// ever smaller batches.
	lastEnd  time.Time
	partners int // sessions of the last pass and those that waited then, still open
	misses   int // gatherings in a row that waited in vain
}

const (
	averageOver  = 8                    // passes
	gatherShare  = 8                    // wait at most 1/8 of a decoding pass
	gatherMost   = 2 * time.Millisecond // and at most this
	gatherGiveUp = 4                    // misses after which gathering stops
	gatherRetry  = 32                   // passes after which it is tried again
	longPass     = 8                    // rows from which a pass says something about long inputs
)

// record takes a pass into account; streams of its sessions had a step of one
// row.
func (t *timing) record(rows, sessions, streams int, took time.Duration, end time.Time) {
	t.passes++
	t.rows += uint64(rows)
	t.lastEnd = end
	if streams > 0 {
		t.lastStream = end
	}
	if rows == sessions {
		t.decode = average(t.decode, took)
		if t.batch == 0 {
			t.batch = float64(rows)
		}
		t.batch += (float64(rows) - t.batch) / averageOver
	}
	if rows >= longPass {
		t.perRow = average(t.perRow, took/time.Duration(rows))
	}
}

func average(old, sample time.Duration) time.Duration {
	if old == 0 {
		return sample
	}
	return old + (sample-old)/averageOver
}

// gather returns how long the group should still wait for the sessions of its
// last pass, so that they are computed together again.
func (g *group) gather(now time.Time) time.Duration {
	t := &g.timing
	if len(g.queue) >= t.partners {
		t.misses = 0
		return 0
	}
	if t.misses >= gatherGiveUp {
		t.misses++
		if t.misses > gatherGiveUp+gatherRetry {
			t.misses = gatherGiveUp - 1
		}
		return 0
	}
	for _, st := range g.queue {
		if st.left() > 1 {
			return 0 // there is enough to do meanwhile
		}
	}
	wait := t.lastEnd.Add(min(gatherMost, t.decode/gatherShare)).Sub(now)
	if wait <= 0 {
		t.misses++
	}
	return wait
}

// chunk is the number of rows of long inputs that fit into a pass without
// making others wait too long: streams that run, or else whoever comes next.
// The time a pass may take is the target, or some multiple of what a pass of
// one row takes: on a slow or busy machine everything takes long, and chunks
// that shrink with it would only waste time.
func (t *timing) chunk(target time.Duration, streaming bool, most int) int {
	const (
		least    = 8
		patience = 4 // without streams, a pass may be this much longer
		stretch  = 4 // passes of one row that a chunk may take beside streams
	)
	unmeasured, may := 32, max(target, stretch*t.decode)
	if !streaming {
		unmeasured, may = 64, patience*may
	}
	switch {
	case t.perRow > 0 && t.decode > 0:
		return min(most, max(least, int(may/t.perRow)))
	case t.perRow > 0: // no pass of one row to compare with
		return min(most, max(unmeasured, int(may/t.perRow)))
	case t.decode > 0: // a row more costs less than a pass of its own
		return min(most, unmeasured, max(least, int(may/t.decode)))
	}
	return min(unmeasured, most)
}
