package engine

import "time"

// gathering is how a group waits for streams that are about to send their next
// token. They come back from a pass, or from the stages before this one, within
// a short time of each other. Starting with the first of them would split them
// into ever smaller batches, and a pass for one row takes nearly as long as one
// for several.
type gathering struct {
	lastEnd  time.Time // of a pass
	newest   time.Time // when the last step came
	partners int       // sessions of the last pass and those that waited then, still open
	from     int       // steps that were there when the present wait began; 0: none does
	misses   int       // waits in a row that brought nobody
}

const (
	gatherShare  = 8                    // wait at most 1/8 of a decoding pass for one more
	gatherMost   = 2 * time.Millisecond // and at most this
	gatherAll    = 2                    // and so many times as long for all of them
	gatherGiveUp = 4                    // misses after which gathering stops
	gatherRetry  = 32                   // passes after which it is tried again
)

// gather returns how long the group should still wait for more streams, so that
// they are computed together.
func (g *group) gather(now time.Time) time.Duration {
	w := &g.gathering
	if len(g.queue) >= g.expected() {
		w.misses = 0
		return 0
	}
	if w.misses >= gatherGiveUp {
		w.misses++
		if w.misses > gatherGiveUp+gatherRetry {
			w.misses = gatherGiveUp - 1
		}
		return 0
	}
	oldest := w.newest
	for _, st := range g.queue {
		if st.left() > 1 {
			return 0 // there is enough to do meanwhile
		}
		if st.enqueued.Before(oldest) {
			oldest = st.enqueued
		}
	}
	wait := w.until(oldest, min(gatherMost, g.timing.decode/gatherShare)).Sub(now)
	switch {
	case wait > 0 && w.from == 0:
		w.from = len(g.queue)
	case wait <= 0 && len(g.queue) > w.from && w.from > 0:
		w.misses = 0
	case wait <= 0:
		w.misses++
	}
	return wait
}

// until is when a wait ends in which each step may take a time to come.
func (w *gathering) until(oldest time.Time, patience time.Duration) time.Time {
	if w.lastEnd.After(oldest) {
		oldest = w.lastEnd
	}
	one, all := w.newest.Add(patience), oldest.Add(gatherAll*patience)
	if w.lastEnd.After(w.newest) {
		one = w.lastEnd.Add(patience)
	}
	if one.Before(all) {
		return one
	}
	return all
}

// expected is how many steps are worth waiting for. A group that computes the
// whole model has the streams of the last pass coming back. One that computes a
// part of it has some of its streams at other stages.
func (g *group) expected() int {
	if g.layers.First == 0 && g.layers.Last == g.model.spec.Info.Layers-1 {
		return min(g.gathering.partners, g.users)
	}
	return g.half()
}

// half of the streams: two stages that compute one half each have both always
// something to do.
func (g *group) half() int { return (g.users + 1) / 2 }

// ended takes a pass into account; so many others of its sessions' steps waited.
func (w *gathering) ended(at time.Time, sessions, waiting int) {
	w.lastEnd, w.partners, w.from = at, sessions+waiting, 0
}
