package answer

import (
	"context"
	"time"
)

// wait is how an answer waits for a node. When the node is late, by what it usually
// takes, the answer voices a suspicion, and whoever reaches nodes finds out whether
// it is still there: one that only computes for long is. After most it is given up
// in any case.
type wait struct {
	late, most time.Duration
	suspect    func() // never blocks
}

const (
	lateFactor = 3                      // times what such a step usually takes
	lateFloor  = 100 * time.Millisecond // sooner nothing is late
	lateFirst  = 500 * time.Millisecond // while nobody knows what is usual
)

// patience is how to wait for a step of rows at a stage.
func (a *Answer) patience(l *link, rows int) wait {
	node := l.stage.Node
	w := wait{late: lateFirst, most: a.run.Router.Patience(node, rows, l.layers()), suspect: func() { a.run.Opener.Suspect(node) }}
	if usual, known := a.run.Router.Usual(node, rows, l.layers()); known {
		w.late = max(lateFloor, lateFactor*usual)
	}
	return w
}

// welcome is how to wait for a node to accept a stage, which takes no computing.
func (a *Answer) welcome(l *link) wait {
	return wait{late: lateFloor, most: a.limits.OpenTime, suspect: func() { a.run.Opener.Suspect(l.stage.Node) }}
}

// begin starts the clock; the returned function stops it.
func (w wait) begin(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithTimeoutCause(ctx, w.most, errPatience)
	late := time.AfterFunc(w.late, w.suspect)
	return ctx, func() { late.Stop(); cancel() }
}
