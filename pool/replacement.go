package pool

import "fmt"

// replacement is whether a writer is being replaced. It lives in the registry,
// because its last step must not race a bind, and is independent of the
// contour.
//
//	          prepare              commit
//	open --------------> preparing --------> retiring
//	     <--------------
//	          abort
//
// open: nobody replaces it. preparing: a successor is being connected; the
// writer takes sessions as before, and a second reservation fails. retiring: the
// successor is published; no new binds, for good.
type replacement int

const (
	replOpen replacement = iota
	replPreparing
	replRetiring
)

var replacementNames = [...]string{replOpen: "open", replPreparing: "preparing", replRetiring: "retiring"}

func (r replacement) String() string { return replacementNames[r] }

// prepare reserves the victim for one successor.
func (r *registry) prepare(victim *writer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !victim.seat.published || victim.seat.replacement != replOpen {
		return false
	}
	victim.seat.replacement = replPreparing
	return true
}

// abort takes a reservation back; nothing else has changed.
func (r *registry) abort(victim *writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if victim.seat.replacement == replRetiring {
		panic(fmt.Sprintf("BUG: replacement of writer %d: retiring -> open", victim.id))
	}
	victim.seat.replacement = replOpen
}

// commit publishes the successor and closes the victim to binds, in one step.
// False: the victim, or the successor, is not what it was; nothing has changed.
func (r *registry) commit(victim, successor *writer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !victim.seat.published || victim.seat.replacement != replPreparing {
		return false
	}
	if !r.publishLocked(successor) {
		return false
	}
	victim.seat.replacement = replRetiring
	victim.seat.refusing = true
	return true
}

func (r *registry) replacementOf(w *writer) replacement {
	r.mu.Lock()
	defer r.mu.Unlock()
	return w.seat.replacement
}
