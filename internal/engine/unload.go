package engine

import (
	"context"
	"errors"
	"fmt"
)

// UnloadLayers implements Engine.
func (c *core) UnloadLayers(ctx context.Context, name string, r Range) error {
	select {
	case c.loading <- struct{}{}:
		defer func() { <-c.loading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	gone, err := c.takeOut(name, r)
	if err != nil || len(gone) == 0 {
		return err
	}
	c.freeUnits(gone)
	return nil
}

// freeUnits frees pieces that nothing uses any more, whatever happened to the
// context or the engine.
func (c *core) freeUnits(units []unit) {
	free := func() error {
		for _, u := range units {
			u.free()
		}
		c.k.tidy()
		return nil
	}
	if err := c.do(context.Background(), free); errors.Is(err, ErrClosed) {
		computing.Lock()
		defer computing.Unlock()
		_ = free()
	}
}

// takeOut removes layers from the model and returns their units.
func (c *core) takeOut(name string, r Range) ([]unit, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.models[name]
	if m == nil || c.closing {
		return nil, nil
	}
	r = Range{max(0, r.First), min(r.Last, len(m.layers)-1)}
	for i := r.First; i <= r.Last; i++ {
		if l := m.layers[i]; l != nil && l.sessions > 0 {
			return nil, fmt.Errorf("%w: layer %d of %s has %d open sessions", ErrInUse, i, name, l.sessions)
		}
	}
	var gone []unit
	for i := r.First; i <= r.Last; i++ {
		gone = append(gone, c.takeLayerLocked(m, i)...)
	}
	c.forgetIfEmptyLocked(m)
	return gone, nil
}

// takeLayerLocked removes one layer.
func (c *core) takeLayerLocked(m *model, i int) []unit {
	l := m.layers[i]
	if l == nil {
		return nil
	}
	m.layers[i] = nil
	c.mem.Weights -= l.weightBytes
	c.mem.Cache -= l.cacheBytes
	gone := []unit{l.unit}
	if i == 0 {
		gone, m.embed = append(gone, m.embed), nil
	}
	if i == len(m.layers)-1 {
		gone, m.head = append(gone, m.head), nil
	}
	return gone
}

// forgetIfEmptyLocked drops a model none of whose layers is loaded.
func (c *core) forgetIfEmptyLocked(m *model) {
	if m == nil || !m.empty() {
		return
	}
	if c.models[m.name] == m {
		delete(c.models, m.name)
	}
	c.groups.forget(func(g *group) bool { return g.model == m })
}

// free frees all that is loaded of a model.
func (m *model) free() {
	for _, l := range m.layers {
		if l != nil {
			l.unit.free()
		}
	}
	if m.embed != nil {
		m.embed.free()
	}
	if m.head != nil {
		m.head.free()
	}
}
