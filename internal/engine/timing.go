package engine

import "time"

// timing is what a group's passes showed.
type timing struct {
	passes, rows uint64
	decode       time.Duration // moving average of a pass with one row per session
	perRow       time.Duration // moving average per row of passes with long inputs
	batch        float64       // moving average of rows in decoding passes
	lastStream   time.Time     // end of the last pass with a step of one row
	lastAwaited  time.Time     // end of the last pass that was not in the background
	behind       time.Duration // moving average per row of passes in the background
}

const (
	averageOver = 8 // passes
	longPass    = 8 // rows from which a pass says something about long inputs
)

// record takes a pass into account; streams of its sessions had a step of one
// row.
func (t *timing) record(rows, sessions, streams int, took time.Duration, end time.Time) {
	t.passes++
	t.rows += uint64(rows)
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

// backgroundShare of what a pass may take beside streams is how long one in the
// background may keep others waiting.
const backgroundShare = 4

// background is the number of rows of a pass in the background while others are about
// to come.
func (t *timing) background(target time.Duration, most int) int {
	if t.behind == 0 {
		return min(most, longPass)
	}
	return min(most, max(1, int(target/backgroundShare/t.behind)))
}
