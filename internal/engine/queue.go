package engine

import (
	"slices"
	"time"
)

// groups are the ranges that sessions run on. Steps of one group can be
// computed in one pass; groups take turns.
type groups struct {
	list []*group
	next int // where the search for the next group begins
}

// group is one range of one model.
type group struct {
	model     *model
	layers    Range
	states    bool    // its rows come back as hidden states, whatever the range
	users     int     // open sessions
	queue     []*step // in the order in which they get rows
	timing    timing
	gathering gathering
}

// maxIdleGroups bounds what is remembered of ranges nobody uses.
const maxIdleGroups = 64

// join finds or makes the group of a range and counts a session in. Passes that
// end in logits and such that do not are never one.
func (gs *groups) join(m *model, r Range, states bool) *group {
	for _, g := range gs.list {
		if g.model == m && g.layers == r && g.states == states {
			g.users++
			return g
		}
	}
	if len(gs.list) >= maxIdleGroups {
		gs.forget(func(g *group) bool { return g.users == 0 })
	}
	g := &group{model: m, layers: r, states: states, users: 1}
	gs.list = append(gs.list, g)
	return g
}

// leave counts a session out.
func (gs *groups) leave(g *group) {
	g.users--
}

// forget removes the groups for which f is true.
func (gs *groups) forget(f func(*group) bool) {
	gs.list = slices.DeleteFunc(gs.list, f)
	gs.next = 0
}

// pick returns the group whose turn it is. If all groups with work wait for
// companions, it returns none and how long to wait; a negative time means that
// there is nothing to do. Work in the background has its turn when there is no other.
func (gs *groups) pick(now time.Time) (*group, time.Duration) {
	if g, wait := gs.among(now, (*group).urgent); g != nil || wait >= 0 {
		return g, wait
	}
	return gs.among(now, func(g *group) bool { return len(g.queue) > 0 })
}

// among is pick for the groups that have work of a kind.
func (gs *groups) among(now time.Time, has func(*group) bool) (*group, time.Duration) {
	wait := time.Duration(-1)
	for i := range gs.list {
		at := (gs.next + i) % len(gs.list)
		g := gs.list[at]
		if !has(g) {
			continue
		}
		if w := g.gather(now); w > 0 {
			if wait < 0 || w < wait {
				wait = w
			}
			continue
		}
		gs.next = at + 1
		return g, 0
	}
	return nil, wait
}

// streaming says whether sessions are in the middle of answers, one token at a
// time: a long prompt must not make them wait.
func (gs *groups) streaming(now time.Time) bool {
	const recent = 500 * time.Millisecond
	return slices.ContainsFunc(gs.list, func(g *group) bool {
		return g.users > 0 && now.Sub(g.timing.lastStream) < recent ||
			slices.ContainsFunc(g.queue, func(st *step) bool { return st.left() == 1 && !st.in.Background })
	})
}

// awaited says that somebody waited for a pass lately, and so may come again soon.
func (gs *groups) awaited(now time.Time) bool {
	const recent = 500 * time.Millisecond
	return slices.ContainsFunc(gs.list, func(g *group) bool { return g.users > 0 && now.Sub(g.timing.lastAwaited) < recent })
}

// urgent says that somebody waits for a step.
func (g *group) urgent() bool {
	return slices.ContainsFunc(g.queue, func(st *step) bool { return !st.in.Background })
}

// due are the steps that the next pass is for: those in the background only when there
// are no others.
func (g *group) due() []*step {
	if !g.urgent() {
		return g.queue
	}
	due := make([]*step, 0, len(g.queue))
	for _, st := range g.queue {
		if !st.in.Background {
			due = append(due, st)
		}
	}
	return due
}

func (g *group) push(st *step) {
	g.queue = append(g.queue, st)
	g.gathering.newest = st.enqueued
}

func (g *group) remove(st *step) {
	if i := slices.Index(g.queue, st); i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
}

// rotate puts a step behind the others, so that long inputs take turns.
func (g *group) rotate(st *step) {
	g.remove(st)
	g.push(st)
}

// limits bound a pass, in rows.
type limits struct {
	rows int // in all
	long int // of inputs of more than one row
	outs int // returned; 0: no limit
	segs int // sessions; 0: no limit
}

// pick is a number of rows of a step.
type pick struct {
	st *step
	n  int
}

// plan chooses the rows of the next pass: first every step that has one row
// left (streams, in the order in which they came), then chunks of longer
// inputs as the limits allow. At least one row is chosen if any step waits.
func plan(queue []*step, lim limits) []pick {
	var picks []pick
	rows, outs := 0, 0
	add := func(st *step, n int) {
		if lim.outs > 0 {
			n = min(n, st.rowsFor(lim.outs-outs))
		}
		if n < 1 || lim.segs > 0 && len(picks) >= lim.segs {
			return
		}
		picks = append(picks, pick{st, n})
		rows += n
		outs += st.outs(n)
	}
	for _, st := range queue {
		if st.left() == 1 && rows < lim.rows {
			add(st, 1)
		}
	}
	long := lim.long
	if len(picks) == 0 {
		long = max(1, long)
	}
	for _, st := range queue {
		if st.left() == 1 {
			continue
		}
		before := rows
		add(st, min(st.left(), long, lim.rows-rows))
		long -= rows - before
	}
	return picks
}

// outs is the number of rows returned when the next n rows are computed.
func (st *step) outs(n int) int {
	switch {
	case st.in.Want == WantAll:
		return n
	case st.in.Want == WantLast && n == st.left():
		return 1
	}
	return 0
}

// rowsFor is the most rows that can be computed next while at most outs are
// returned.
func (st *step) rowsFor(outs int) int {
	switch {
	case st.in.Want == WantAll:
		return outs
	case st.in.Want == WantLast && outs < 1:
		return st.left() - 1
	}
	return st.left()
}
