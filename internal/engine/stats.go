package engine

import (
	"cmp"
	"slices"
)

// Stats implements Engine.
func (c *core) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Sessions = len(c.sessions)
	s.Ranges = nil
	for _, g := range c.groups.list {
		s.Waiting += len(g.queue)
		t := g.timing
		if t.passes == 0 {
			continue
		}
		s.Ranges = append(s.Ranges, RangeStats{
			Model: g.model.name, Layers: g.layers, Passes: t.passes, Rows: t.rows,
			Decode: t.decode, PerRow: t.perRow, Batch: t.batch,
		})
	}
	slices.SortFunc(s.Ranges, func(a, b RangeStats) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Layers.First, b.Layers.First), cmp.Compare(a.Layers.Last, b.Layers.Last))
	})
	return s
}
