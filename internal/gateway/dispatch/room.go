package dispatch

import (
	"time"

	"hecate/internal/control"
	"hecate/internal/gateway/answer"
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
// knows exactly, so only what others hold is taken from the report. Of a node
// that does not say whose cells they are, that is what is used beyond our own,
// which errs towards too much room for half a second after each of our ends; the
// node has the last word and refuses.
type room struct {
	cells   int // in all; 0: the node has not said
	foreign int // taken by others at the last report; 0 <= foreign <= cells
	own     int // reserved by leases of this gateway; >= 0
	ended   []ended

	next map[uint64]int    // by lease: how much more it will ask for; all > 0
	soon int               // the largest of next
	all  int               // their sum
	afar map[string]Growth // what leases of other gateways will ask for, by gateway

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

// told is report of a node that says how many cells each gateway has.
func (r *room) told(taken map[string]int, gateway string) {
	r.foreign = 0
	for of, cells := range taken {
		if of != gateway {
			r.foreign = min(r.foreign+cells, r.cells)
		}
	}
}

func (r *room) take(cells int) { r.own += cells }

func (r *room) give(cells int, now time.Time) {
	r.forget(now)
	r.own -= cells
	r.ended = append(r.ended, ended{now, cells})
}

// expect notes how many more cells a lease will ask for; 0: none, or it has ended.
//
// What the one that asks for most will ask for is kept from newcomers. Portions are
// asked for one at a time and between two of them some answer ends, so that is
// enough for most. From an answer that gave way half of what all of them will ask
// for is kept, as if half of them ended first: it computes everything again, which
// should be worth it.
func (r *room) expect(lease uint64, cells int) {
	if cells == 0 {
		delete(r.next, lease)
	} else {
		if r.next == nil {
			r.next = map[uint64]int{}
		}
		r.next[lease] = cells
	}
	r.soon, r.all = 0, 0
	for _, n := range r.next {
		r.soon, r.all = max(r.soon, n), r.all+n
	}
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
func (b *book) reportRooms(h *control.Health, gateway string, now time.Time) {
	type cells struct {
		all, free int
		taken     map[string]int
	}
	fewest := map[string]cells{}
	for _, f := range h.State.Fragments {
		fewest[f.Model] = cells{h.Cells, h.FreeCells, nil} // of a node that does not tell them apart
	}
	seen := map[string]bool{}
	for _, f := range h.Held {
		if f.Cells > 0 && (!seen[f.Model] || f.FreeCells < fewest[f.Model].free) {
			fewest[f.Model], seen[f.Model] = cells{f.Cells, f.FreeCells, f.Taken}, true
		}
	}
	for model, c := range fewest {
		r := b.room(model)
		if r.report(c.all, c.free, now); c.taken != nil {
			r.told(c.taken, gateway)
		}
	}
}

// focus is which cells the fleet knows: those that a model has free on each node,
// without what is kept from such a request.
type focus struct {
	model string
	who   asker
}

// asker is who asks for room.
type asker int

const (
	newcomer asker = iota
	returner       // gave way and comes back
	patient        // is being rescued: nothing is kept from it
)

func askerOf(n answer.Need, rescue bool) asker {
	switch {
	case rescue:
		return patient
	case n.Begun:
		return returner
	}
	return newcomer
}

// kept is what is kept from an asker for answers that run, of other gateways too.
func (r *room) kept(from asker) int {
	soon, all := r.soon, r.all
	for _, g := range r.afar {
		soon, all = max(soon, g.Most), all+g.All
	}
	return [...]int{soon, max(soon, all/2), 0}[from]
}

// Growth is how many more cells the leases on a node will ask for.
type Growth struct {
	Most int // the one that asks for most
	All  int // all of them together
}

// Expected says what this gateway's leases of a model will ask for, by node; nodes
// where they ask for nothing are left out.
func (d *Dispatcher) Expected(model string) map[string]Growth {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out map[string]Growth
	for id, b := range d.mu.nodes {
		if r := b.rooms[model]; r != nil && r.all > 0 {
			if out == nil {
				out = map[string]Growth{}
			}
			out[id] = Growth{r.soon, r.all}
		}
	}
	return out
}

// ExpectAfar takes what another gateway's leases of a model will ask for, by node.
func (d *Dispatcher) ExpectAfar(gateway, model string, growth map[string]Growth) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for id, b := range d.mu.nodes {
		r := b.room(model)
		g, asks := growth[id]
		if g == r.afar[gateway] {
			continue
		}
		if asks {
			if r.afar == nil {
				r.afar = map[string]Growth{}
			}
			r.afar[gateway] = g
		} else {
			delete(r.afar, gateway)
		}
		d.signalLocked(id, b, now)
	}
	d.wakeLocked()
}

// focusLocked tells the fleet of the cells for one kind of request: a node's
// signals have room for one.
func (d *Dispatcher) focusLocked(f focus) {
	if d.mu.focus == f {
		return
	}
	d.mu.focus = f
	now := time.Now()
	for id, b := range d.mu.nodes {
		d.signalLocked(id, b, now)
	}
}
