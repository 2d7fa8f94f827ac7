package engine

import "fmt"

// A session's cells lie side by side. Sessions of many lengths that come and
// go leave gaps between them, until a new one fits into none although there is
// room. Then, between two passes, the runs are slid together. A row's result
// does not depend on where its history lies, so nobody notices.

// fragmented says whether a session that found no cells would find some if the
// gaps were one.
func (c *core) fragmented(o SessionOptions) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.models[o.Model]
	if m == nil || o.Cells > c.opts.contextOf(m.spec.Info.Context) {
		return false
	}
	if _, missing := m.missing(o.Layers); missing {
		return false
	}
	for _, l := range m.layers[o.Layers.First : o.Layers.Last+1] {
		if l.cells.open(o.Rescue) < o.Cells {
			return false
		}
	}
	return true
}

// compact slides the runs on each layer of a range together. It runs on the
// computing goroutine, so no pass uses the cells meanwhile.
func (c *core) compact(name string, r Range) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.models[name]
	if m == nil {
		return nil
	}
	if _, missing := m.missing(r); missing {
		return nil
	}
	for i := r.First; i <= r.Last; i++ {
		if err := c.moveAllLocked(m, i, m.layers[i].cells.compact()); err != nil {
			return err
		}
	}
	return nil
}

// moveAllLocked moves runs of one layer and tells their sessions. Who owns which
// is found before the first move: later two may begin at the same cell.
func (c *core) moveAllLocked(m *model, i int, moves []move) (err error) {
	owners := c.ownersLocked(m, i)
	for _, mv := range moves {
		s := owners[mv.from]
		if mv.n = s.held; err == nil && mv.n > 0 { // the rest of the run is empty
			err = c.k.move(m.layers[i].unit, mv)
		}
		s.starts[i-s.layers.First] = mv.to
	}
	if err != nil {
		// The cache of this layer is lost; its sessions must not go on.
		err = fmt.Errorf("move the cache of layer %d of %s: %w", i, m.name, err)
		c.failLocked(m, i, err)
	}
	return err
}

// ownersLocked finds the sessions of a layer by the cells at which their runs begin.
func (c *core) ownersLocked(m *model, layer int) map[int]*session {
	owners := map[int]*session{}
	for s := range c.sessions {
		if s.model == m && layer >= s.layers.First && layer <= s.layers.Last {
			owners[s.starts[layer-s.layers.First]] = s
		}
	}
	return owners
}

// failLocked ends the sessions on a layer. Their cells are given back when
// they are closed.
func (c *core) failLocked(m *model, layer int, err error) {
	for s := range c.sessions {
		if s.model != m || layer < s.layers.First || layer > s.layers.Last {
			continue
		}
		s.failed = err
		if s.step != nil {
			c.finishLocked(s.step, err)
		}
	}
}
