package swarm

import "sort"

// holdings are the layers of one model that the seats of a desk hold already,
// by the previous plan: pipelines and warm spares alike.
type holdings struct {
	ranges map[int][]LayerRange // by seat, merged and in order
}

func newHoldings(d *desk, previous *Plan, model string) *holdings {
	h := &holdings{ranges: map[int][]LayerRange{}}
	for _, n := range previous.Nodes {
		i, ok := d.index[n.Profile.ID]
		if !ok {
			continue
		}
		var rs []LayerRange
		for _, f := range n.Fragments {
			if f.Model == model {
				rs = append(rs, f.Layers)
			}
		}
		if len(rs) > 0 {
			h.ranges[i] = mergeRanges(rs)
		}
	}
	return h
}

// mergeRanges sorts ranges and joins those that touch or overlap.
func mergeRanges(rs []LayerRange) []LayerRange {
	sort.Slice(rs, func(i, j int) bool { return rs[i].First < rs[j].First })
	out := rs[:0]
	for _, r := range rs {
		if n := len(out); n > 0 && r.First <= out[n-1].Last+1 {
			out[n-1].Last = max(out[n-1].Last, r.Last)
			continue
		}
		out = append(out, r)
	}
	return out
}

// missing is the bytes of weights that seat i would have to fetch to hold the
// layers first..last.
func (d *dealer) missing(i, first, last int) int64 {
	bytes := d.s.weight[last+1] - d.s.weight[first]
	if d.held == nil {
		return bytes
	}
	for _, r := range d.held.ranges[i] {
		if c, ok := r.Clip(LayerRange{first, last}); ok {
			bytes -= d.s.weight[c.Last+1] - d.s.weight[c.First]
		}
	}
	return bytes
}

// moved is the bytes of weights that a layout makes the seats fetch.
func (d *dealer) moved(l layout) int64 {
	var sum int64
	for _, c := range l {
		for _, p := range c {
			sum += d.missing(p.seat, p.first, p.last)
		}
	}
	return sum
}
