package engine

import (
	"context"
	"fmt"
)

// A session takes cells for as much of an answer as is likely, and grows when it
// gets longer. Best, the cells behind its run are free; else the run moves to a gap
// that is large enough, or others slide out of its way.

// A way to enlarge a session's run on one layer.
type growth int

const (
	inPlace growth = iota // the cells behind it are free
	toGap                 // it moves
	slid                  // others slide out of its way
)

// Grow implements Session.
func (s *session) Grow(ctx context.Context, cells int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if done, err := s.growInPlace(cells); done || err != nil {
		return err
	}
	return s.core.do(ctx, func() error { return s.growByMoving(cells) })
}

// growInPlace needs no kernels, and so no turn. It is not done when some layer
// needs them.
func (s *session) growInPlace(cells int) (done bool, err error) {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	if cells <= s.room {
		return true, s.growableLocked(s.room)
	}
	if err := s.growableLocked(cells); err != nil {
		return false, err
	}
	ways, err := s.waysLocked(cells)
	if err != nil {
		return false, err
	}
	for _, w := range ways {
		if w != inPlace {
			return false, nil
		}
	}
	for i, at := range s.starts {
		s.model.layers[s.layers.First+i].cells.extend(at, cells)
	}
	s.room = cells
	return true, nil
}

// growableLocked says why a session cannot have so many cells at all.
func (s *session) growableLocked(cells int) error {
	switch most := s.core.opts.contextOf(s.model.spec.Info.Context); {
	case s.failed != nil:
		return s.failed
	case s.closed || s.core.closing:
		return ErrClosed
	case s.step != nil:
		return fmt.Errorf("%w: grow during a step", ErrInput)
	case cells > most:
		return &CellsError{Model: s.model.name, Layer: s.layers.First, Need: cells, Free: most}
	}
	return nil
}

// waysLocked says for each layer how the session's run there becomes so long. If
// it cannot on one layer, it does on none.
func (s *session) waysLocked(n int) ([]growth, error) {
	ways := make([]growth, len(s.starts))
	for i, at := range s.starts {
		c := s.model.layers[s.layers.First+i].cells
		largest := 0
		c.gaps(s.rescue, func(_, _, size int) { largest = max(largest, size) })
		have := c.used[c.index(at)].n
		switch {
		case c.room(at, s.rescue) >= n:
		case largest >= n:
			ways[i] = toGap
		case c.open(s.rescue) >= n-have:
			ways[i] = slid
		default:
			return nil, &CellsError{Model: s.model.name, Layer: s.layers.First + i, Need: n, Free: have + max(0, c.open(s.rescue))}
		}
	}
	return ways, nil
}

// growByMoving runs on the computing goroutine, so no pass uses the cells
// meanwhile. Everything is looked at anew: others came and went.
func (s *session) growByMoving(n int) error {
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := s.growableLocked(n); err != nil {
		return err
	}
	ways, err := s.waysLocked(n)
	if err != nil {
		return err
	}
	for i, way := range ways {
		if err := c.growLayerLocked(s, i, n, way); err != nil {
			return err
		}
	}
	s.room = n
	return nil
}

func (c *core) growLayerLocked(s *session, i, n int, way growth) error {
	layer, at := s.layers.First+i, s.starts[i]
	l := s.model.layers[layer]
	switch way {
	case inPlace:
		l.cells.extend(at, max(n, l.cells.used[l.cells.index(at)].n))
		return nil
	case slid:
		return c.moveAllLocked(s.model, layer, l.cells.widen(at, n, s.rescue))
	}
	to, _, _ := l.cells.take(n, s.rescue)
	if s.held > 0 {
		if err := c.k.move(l.unit, move{at, to, s.held}); err != nil {
			l.cells.give(to) // what it held is where it was
			return fmt.Errorf("move the cache of layer %d of %s: %w", layer, s.model.name, err)
		}
	}
	l.cells.give(at)
	s.starts[i] = to
	return nil
}
