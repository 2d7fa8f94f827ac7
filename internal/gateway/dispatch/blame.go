package dispatch

import (
	"errors"
	"math"
	"time"

	"hecate/internal/gateway/answer"
	"hecate/internal/stage"
)

// Blame takes failures into the books when no rescue follows. The grant that met
// with them stands.
func (d *Dispatcher) Blame(n answer.Need, failed []answer.Failure) {
	d.mu.Lock()
	d.condemnLocked(n, failed, false)
	d.wakeLocked()
	d.mu.Unlock()
}

// lossMemory is how long several lost connections to one node are one death: all
// its answers notice at once, and none of them is more news than the first.
const lossMemory = time.Second

// condemnLocked books the failures. A node whose connections are gone counts as
// dead until it is heard of again. Membership has it from the data plane.
func (d *Dispatcher) condemnLocked(n answer.Need, failed []answer.Failure, rescue bool) {
	now := time.Now()
	for _, f := range failed {
		if f.Kind == answer.Yielding {
			continue
		}
		b := d.bookLocked(f.Node)
		if f.Kind == answer.Gone && now.Sub(b.lost) <= lossMemory {
			d.shunLocked(f.Node, b, now)
			continue // the same death, seen by one more answer
		}
		switch verdictOn(f) {
		case isFull:
			d.pauseLocked(f.Node, b, n, rescue, now)
		case isAway:
			d.shunLocked(f.Node, b, now)
		case isFailing:
			b.circuit.Failure(now)
		case isLost:
			b.circuit.Failure(now)
			d.shunLocked(f.Node, b, now)
		}
		if f.Kind == answer.Gone {
			b.lost = now
		}
		d.signalLocked(f.Node, b, now)
	}
}

// A verdict is what a failure says of its node.
type verdict int

const (
	isFull    verdict = iota // it lives and has no room: not its fault
	isAway                   // it lives, but is paused or has other layers than we believe
	isFailing                // it answers with errors
	isLost                   // it answers no more
)

func verdictOn(f answer.Failure) verdict {
	if f.Kind != answer.Refused {
		return isLost
	}
	var refusal *stage.Error
	if errors.As(f.Err, &refusal) {
		switch refusal.Code {
		case stage.CodeNoCells:
			return isFull
		case stage.CodePaused, stage.CodeNotHeld:
			return isAway
		}
	}
	return isFailing
}

// shunLocked leaves a node alone until its next report.
func (d *Dispatcher) shunLocked(node string, b *book, now time.Time) {
	b.condemned = now
	d.mu.fleet.MarkDead(node)
}

// pauseLocked asks a full node for less for a while. What a rescue was refused
// is not even among the cells that are kept for rescues.
func (d *Dispatcher) pauseLocked(node string, b *book, n answer.Need, rescue bool, now time.Time) {
	cells, r := n.Room(), b.room(n.Model)
	if !rescue {
		cells += int(math.Ceil(d.cfg.Policy.KVReserve * float64(r.cells)))
	}
	time.AfterFunc(r.refuse(cells, now), func() { d.ask(node) })
}

// ask lets waiting requests try a node again that was left alone.
func (d *Dispatcher) ask(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.signalLocked(node, d.bookLocked(node), time.Now())
	d.wakeLocked()
}
