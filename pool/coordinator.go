package pool

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// coordinator owns the desired map and the active and pending generations. It
// decides nothing about writers. Its lock is the last in the order.
type coordinator struct {
	mu        sync.Mutex
	desired   *Map
	active    *generation
	pending   []*generation // oldest first; at most reinit_parallel
	lastID    uint64
	triggerAt time.Time // a new cycle starts then; zero: none is due
	reinitAt  time.Time // periodic trigger; zero: off
	counts    [outcomes]uint64
}

// apply makes m the desired map and triggers a cycle if its contents differ
// from what is active. The same contents under a newer revision need no new
// connections: the active generation takes the revision over, and whatever was
// pending in between is superseded.
func (c *coordinator) apply(m Map, now time.Time, coalesce time.Duration) (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.desired; old != nil {
		switch {
		case m.Revision == old.Revision && m.Hash == old.Hash:
			return false, nil
		case m.Revision <= old.Revision:
			return false, fmt.Errorf("revision %d (%s) after %d (%s): %w", m.Revision, m.Hash, old.Revision, old.Hash, ErrStaleRevision)
		}
	}
	c.desired = &m
	if c.active != nil && c.active.hash == m.Hash {
		c.active.revision = m.Revision
		c.triggerAt = time.Time{}
		return true, nil
	}
	c.triggerLocked(now, coalesce)
	return true, nil
}

// triggerLocked starts the coalescing window; triggers within it merge.
func (c *coordinator) triggerLocked(now time.Time, coalesce time.Duration) {
	if c.triggerAt.IsZero() {
		c.triggerAt = now.Add(coalesce)
	}
}

// step drops cycles that can never be activated, and starts one that is due.
func (c *coordinator) step(ctx context.Context, now time.Time, s *Settings) (started *generation, dropped []*generation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.desired == nil {
		return nil, nil
	}
	c.pending = slices.DeleteFunc(c.pending, func(g *generation) bool {
		why := c.hopelessLocked(g, now, s)
		if why != outcomeNone {
			c.dropLocked(g, why)
			dropped = append(dropped, g)
		}
		return why != outcomeNone
	})
	for _, g := range dropped {
		if g.last == outcomeExpired {
			c.triggerLocked(now, 0) // warm up afresh
		}
	}
	c.periodicLocked(now, s)
	if c.triggerAt.IsZero() || now.Before(c.triggerAt) {
		return nil, dropped
	}
	c.triggerAt = time.Time{}
	if len(c.pending) >= s.ReinitParallel {
		return nil, dropped // the cycle under way is for the same map: it is reused
	}
	return c.startLocked(ctx, now), dropped
}

// hopelessLocked says why a pending generation must go.
func (c *coordinator) hopelessLocked(g *generation, now time.Time, s *Settings) outcome {
	switch {
	case g.hash != c.desired.Hash || g.revision != c.desired.Revision:
		return outcomeSuperseded
	case c.active != nil && c.active.id > g.id:
		return outcomeSuperseded
	case now.Sub(g.started) > s.PendingMaxAge.D():
		return outcomeExpired
	}
	return outcomeNone
}

func (c *coordinator) dropLocked(g *generation, why outcome) {
	g.last = why
	c.counts[why]++
	g.cancel()
}

func (c *coordinator) periodicLocked(now time.Time, s *Settings) {
	every := s.ReinitEvery.D()
	switch {
	case every == 0 || c.active == nil:
		c.reinitAt = time.Time{}
	case c.reinitAt.IsZero() || c.reinitAt.Sub(now) > every:
		c.reinitAt = c.active.activeAt.Add(every)
	}
	if !c.reinitAt.IsZero() && !now.Before(c.reinitAt) {
		c.reinitAt = now.Add(every)
		c.triggerLocked(now, s.Coalesce.D())
	}
}

func (c *coordinator) startLocked(ctx context.Context, now time.Time) *generation {
	c.lastID++
	g := &generation{
		id: c.lastID, hash: c.desired.Hash, revision: c.desired.Revision, groups: c.desired.Groups, started: now,
	}
	g.ctx, g.cancel = context.WithCancel(ctx)
	c.pending = append(c.pending, g)
	return g
}

// activateLocked makes g the active generation if nothing has changed since its
// coverage was judged. The caller holds the locks of writers and registry, so
// the judgement is still true. A refusal changes nothing but the count.
func (c *coordinator) activateLocked(g *generation, judged outcome, now time.Time) outcome {
	switch {
	case !slices.Contains(c.pending, g), c.desired == nil,
		g.hash != c.desired.Hash, g.revision != c.desired.Revision,
		c.active != nil && c.active.id > g.id:
		judged = outcomeSuperseded
	}
	if judged != outcomeActivated {
		if g.last != judged {
			c.counts[judged]++
		}
		g.last = judged
		return judged
	}
	c.pending = slices.DeleteFunc(c.pending, func(o *generation) bool { return o == g })
	if c.active != nil {
		c.active.cancel()
	}
	c.active, g.activeAt, g.last = g, now, outcomeActivated
	c.counts[outcomeActivated]++
	return outcomeActivated
}

// alive lists the generations that may own writers: the active one first.
func (c *coordinator) alive() []*generation {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*generation
	if c.active != nil {
		list = append(list, c.active)
	}
	return append(list, c.pending...)
}

// find returns the living generation with this id, or nil: a late task must not
// publish into a newer one.
func (c *coordinator) find(id uint64) *generation {
	for _, g := range c.alive() {
		if g.id == id {
			return g
		}
	}
	return nil
}

// next is when step has something to do, zero if only events decide.
func (c *coordinator) next() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.triggerAt.IsZero() || !c.reinitAt.IsZero() && c.reinitAt.Before(c.triggerAt) {
		return c.reinitAt
	}
	return c.triggerAt
}

// end cancels everything.
func (c *coordinator) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.pending {
		c.dropLocked(g, outcomeCancelled)
	}
	if c.active != nil {
		c.active.cancel()
	}
	c.pending, c.triggerAt = nil, time.Time{}
}
