package dispatch

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"hecate/internal/gateway/answer"
)

// A RoomError says where a grant cannot grow. It is ErrFull.
type RoomError struct {
	Missing map[string]int // by node: cells
	Shadows int            // that have been asked to leave these nodes, and will in a moment
}

func (e *RoomError) Error() string {
	nodes := slices.Sorted(maps.Keys(e.Missing))
	return fmt.Sprintf("no room to grow on %s: %d cells are missing", strings.Join(nodes, ", "), e.Missing[nodes[0]])
}

// Is makes errors.Is(err, ErrFull) true.
func (e *RoomError) Is(target error) bool { return target == ErrFull }

// Grow makes a grant reserve the need's room, on all its nodes or on none. Where
// shadows are in the way they are asked to go. An error is a RoomError.
func (d *Dispatcher) Grow(_ context.Context, n answer.Need, g answer.Grant) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.mu.leases[g.Token]
	if !ok {
		panic("BUG: a reservation that is not held grows")
	}
	more := max(0, n.Room()-l.cells)
	if missing := d.missingLocked(l, more); len(missing) > 0 {
		return &RoomError{missing, d.revokeLocked(slices.Collect(maps.Keys(missing))...)}
	}
	now := time.Now()
	for _, node := range l.nodes {
		b := d.bookLocked(node)
		b.room(l.model).take(more)
		b.room(l.model).expect(g.Token, n.Next)
		d.signalLocked(node, b, now)
	}
	l.cells += more
	d.mu.leases[g.Token] = l
	return nil
}

// missingLocked is what the nodes of a lease lack of so many cells more. Cells that
// are kept for rescues are not for growing.
func (d *Dispatcher) missingLocked(l lease, more int) map[string]int {
	if more == 0 {
		return nil
	}
	missing := map[string]int{}
	now := time.Now()
	for _, node := range l.nodes {
		r := d.bookLocked(node).room(l.model)
		kept := int(math.Ceil(d.cfg.Policy.KVReserve * float64(r.cells)))
		if free := r.free(now) - kept; r.cells > 0 && free < more {
			missing[node] = more - free
		}
	}
	return missing
}
