package pool

import (
	"fmt"
	"time"
)

// contour is a writer's role. It is the pool's, under the lock of the writers.
//
//	       readiness reached          swap, replacement, GOAWAY, removal
//	warm ---------------------> active ---------------------------> draining --> removed
//	  \______________________________________________________________^
//
// warm: connected and valid, not first choice. active: takes sessions first.
// draining: takes none; the ones it has live on until it is empty, or until its
// deadline.
type contour int

const (
	contourWarm contour = iota
	contourActive
	contourDraining
)

var contourNames = [...]string{contourWarm: "warm", contourActive: "active", contourDraining: "draining"}

func (c contour) String() string { return contourNames[c] }

// promote makes a warm writer active.
func (w *writer) promote() {
	if w.contour == contourDraining {
		panic(fmt.Sprintf("BUG: contour of writer %d: draining -> active", w.id))
	}
	w.contour = contourActive
}

// drain starts the clock of a writer that takes no more sessions. A second call
// changes nothing: neither reason nor clock. The caller closes the registry's
// seat to binds.
func (w *writer) drain(now time.Time, why string) bool {
	if w.contour == contourDraining {
		return false
	}
	w.contour = contourDraining
	w.drainStart, w.drainWhy = now, why
	return true
}

// drainLimit is how long a draining writer may keep its sessions.
func drainLimit(s *Settings) time.Duration {
	force := s.ForceClose.D()
	if force == 0 {
		force = defaultForceClose
	}
	return max(force, s.DrainTTL.D())
}

const defaultForceClose = 300 * time.Second
