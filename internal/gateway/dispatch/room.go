package dispatch

import (
	"time"

	"hecate/internal/control"
)

const (
	// reportLag bounds how old what a report says may be when it arrives: a
	// session that ended less than this ago may still be counted in it.
	reportLag = 500 * time.Millisecond
	// A node that refused for want of cells is not asked for as many again for
	// a moment: cells of an answer that just ended are freed within
	// milliseconds, a cache in pieces heals only as answers end.
	leastPause = 20 * time.Millisecond
	mostPause  = time.Second
	// soonAfter a pause another refusal still has the same cause.
	soonAfter = 100 * time.Millisecond
)

// room is what this gateway knows of one node's KV cells.
//
// A node's report is late: it still counts sessions that have ended and does
// not count those that were granted since. Its own reservations a gateway
// knows exactly, so only what others hold is taken from the report: what is
// used beyond our own. That errs towards too much room, for half a second; the
// node has the last word and refuses.
type room struct {
	cells   int // in all; 0: the node has not said
	foreign int // taken by others at the last report; 0 <= foreign <= cells
	own     int // reserved by leases of this gateway; >= 0
	ended   []ended

	refused int       // cells that the node had no room for, until then
	until   time.Time // when that is forgotten
	pause   time.Duration
}

// ended is a lease that was given back.
type ended struct {
	at    time.Time
	cells int
}

// report takes what the node says it has in all and free.
func (r *room) report(cells, free int, now time.Time) {
	r.cells = cells
	r.forget(now)
	ours := r.own
	for _, e := range r.ended {
		ours += e.cells
	}
	r.foreign = min(max(0, cells-free-ours), cells)
}

func (r *room) take(cells int) { r.own += cells }

func (r *room) give(cells int, now time.Time) {
	r.forget(now)
	r.own -= cells
	r.ended = append(r.ended, ended{now, cells})
}

// forget drops leases that no report counts any more.
func (r *room) forget(now time.Time) {
	old := 0
	for old < len(r.ended) && now.Sub(r.ended[old].at) >= reportLag {
		old++
	}
	r.ended = r.ended[:copy(r.ended, r.ended[old:])]
}

// refuse notes that the node had no run of so many cells, and says for how long
// it is not to be asked again: the longer the more often in a row it refuses.
func (r *room) refuse(cells int, now time.Time) time.Duration {
	switch {
	case now.After(r.until.Add(soonAfter)):
		r.refused, r.pause = cells, leastPause
	case now.After(r.until):
		r.refused, r.pause = cells, min(2*r.pause, mostPause)
	default:
		r.refused = min(r.refused, cells)
	}
	r.until = now.Add(r.pause)
	return r.pause
}

// free is how many cells may be given away, those kept for rescues included.
func (r *room) free(now time.Time) int {
	free := max(0, r.cells-r.foreign-r.own)
	if now.Before(r.until) {
		free = min(free, r.refused-1)
	}
	return free
}

// room is what is known of one model's cells on a node.
func (b *book) room(model string) *room {
	r := b.rooms[model]
	if r == nil {
		r = &room{}
		if b.rooms == nil {
			b.rooms = map[string]*room{}
		}
		b.rooms[model] = r
	}
	return r
}

// reportRooms takes what a node says of its cells. Of a model that it holds in
// several places, the one with the fewest free counts.
func (b *book) reportRooms(h *control.Health, now time.Time) {
	type cells struct{ all, free int }
	fewest := map[string]cells{}
	for _, f := range h.State.Fragments {
		fewest[f.Model] = cells{h.Cells, h.FreeCells} // of a node that does not tell them apart
	}
	seen := map[string]bool{}
	for _, f := range h.Held {
		if f.Cells > 0 && (!seen[f.Model] || f.FreeCells < fewest[f.Model].free) {
			fewest[f.Model], seen[f.Model] = cells{f.Cells, f.FreeCells}, true
		}
	}
	for model, c := range fewest {
		b.room(model).report(c.all, c.free, now)
	}
}

// focusLocked tells the fleet of the cells of one model: a node's signals have
// room for one.
func (d *Dispatcher) focusLocked(model string) {
	if d.mu.focus == model {
		return
	}
	d.mu.focus = model
	now := time.Now()
	for id, b := range d.mu.nodes {
		d.signalLocked(id, b, now)
	}
}
