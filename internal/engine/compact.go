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
		if err := c.compactLayerLocked(m, i); err != nil {
			return err
		}
	}
	return nil
}

func (c *core) compactLayerLocked(m *model, i int) (err error) {
	l := m.layers[i]
	for _, mv := range l.cells.compact() {
		if err == nil {
			err = c.k.move(l.unit, mv)
		}
		c.relocateLocked(m, i, mv)
	}
	if err != nil {
		// The cache of this layer is lost; its sessions must not go on.
		err = fmt.Errorf("move the cache of layer %d of %s: %w", i, m.name, err)
		c.failLocked(m, i, err)
	}
	return err
}

// relocateLocked tells the session that owns a run where it lies now.
func (c *core) relocateLocked(m *model, layer int, mv move) {
	for s := range c.sessions {
		if s.model != m || layer < s.layers.First || layer > s.layers.Last {
			continue
		}
		if at := &s.starts[layer-s.layers.First]; *at == mv.from {
			*at = mv.to
			return
		}
	}
	panic("BUG: cells moved that no session has")
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
