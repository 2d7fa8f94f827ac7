package swarm

import "slices"

// scratch places up to k copies as if nothing stood anywhere: apart if that is
// possible, else sharing nodes, else one copy fewer.
func (d *dealer) scratch(k int) layout {
	seats := d.candidates()
	for c := min(k, len(seats)); c > 0; c-- {
		if l, ok := d.apart(seats, c); ok {
			return l
		}
		if options := d.sharing(seats, c); len(options) > 0 {
			return d.leastMoved(options)
		}
	}
	return nil
}

// sharing lists layouts of k copies where they cannot all be apart: all copies
// in one row, or some apart and the others bridged around them.
func (d *dealer) sharing(seats []int, k int) []layout {
	if !d.enough(seats, k) {
		return nil
	}
	var out []layout
	if l, ok := d.together(seats, k); ok {
		out = append(out, l)
	}
	var starts []layout
	for j := k - 1; j > 0; j-- {
		if some, ok := d.apart(seats, j); ok {
			starts = append(starts, some)
		}
	}
	if len(seats) <= smallSwarm {
		const most = 16 // teams come best first
		teams := d.teams(d.byMemory(seats))
		for _, t := range teams[:min(most, len(teams))] {
			starts = append(starts, layout{t.chain})
		}
	}
	for _, some := range starts {
		d.take(d.s, some, 1)
		if l, ok := d.complete(some, k); ok {
			out = append(out, l)
		}
		d.take(d.s, some, -1)
	}
	return out
}

// place places up to k copies, keeping the chains of the previous plan where
// the result is as good as one from scratch.
func (d *dealer) place(k int, previous layout) layout {
	fresh := d.scratch(k)
	if len(previous) == 0 {
		return fresh
	}
	options := d.keeping(d.mended(previous), min(k, max(len(fresh), 1)))
	if fresh != nil {
		options = append(options, fresh)
	}
	if len(options) == 0 {
		return nil
	}
	return d.leastMoved(options)
}

// mended returns the previous chains that can stand: those that still fit, and
// those whose missing stages somebody else can take whole.
func (d *dealer) mended(previous layout) layout {
	var out layout
	taken := map[int]bool{}
	for _, c := range previous {
		for _, p := range c {
			if p.seat >= 0 {
				taken[p.seat] = true
			}
		}
	}
	booked := layout{}
	for _, c := range previous {
		gone := func(p piece) bool {
			return p.seat < 0 || d.seats[p.seat].free < d.s.need[p.last+1]-d.s.need[p.first]
		}
		if slices.ContainsFunc(c, gone) {
			fixed, ok := d.patch(c, gone, taken)
			if !ok {
				continue
			}
			c = fixed
		}
		for _, p := range c {
			taken[p.seat] = true
		}
		d.take(d.s, layout{c}, 1)
		booked = append(booked, c)
		out = append(out, c)
	}
	d.take(d.s, booked, -1)
	return out
}

// keeping lists the layouts of k copies that keep some of the standing chains
// and build the others around them.
func (d *dealer) keeping(standing layout, k int) []layout {
	var out []layout
	for _, kept := range selections(standing, k) {
		d.take(d.s, kept, 1)
		l, ok := d.complete(kept, k)
		d.take(d.s, kept, -1)
		if ok {
			out = append(out, l)
		}
	}
	return out
}

// selections are the subsets of chains that are worth keeping together: all
// subsets of a few, else all of them and all but one.
func selections(standing layout, k int) []layout {
	var out []layout
	if n := len(standing); n <= 4 {
		for mask := 1<<n - 1; mask > 0; mask-- {
			var kept layout
			for i, c := range standing {
				if mask>>i&1 == 1 {
					kept = append(kept, c)
				}
			}
			if len(kept) <= k {
				out = append(out, kept)
			}
		}
		return out
	}
	if len(standing) <= k {
		out = append(out, standing)
	}
	for i := range standing {
		kept := slices.Concat(standing[:i], standing[i+1:])
		out = append(out, kept[:min(k, len(kept))])
	}
	return out
}

// complete adds copies to kept, which is booked, until there are k.
func (d *dealer) complete(kept layout, k int) (layout, bool) {
	l := slices.Clone(kept)
	if len(l) == k {
		return l, true
	}
	used := d.ownedBy(kept)
	var others []int
	for _, i := range d.candidates() {
		if _, ok := used[i]; !ok {
			others = append(others, i)
		}
	}
	if more, ok := d.apart(others, k-len(l)); ok {
		return append(l, more...), true
	}
	var added layout
	for len(l) < k {
		c, ok := d.bridge(d.candidates(), l)
		if !ok {
			break
		}
		d.take(d.s, layout{c}, 1)
		added = append(added, c)
		l = append(l, c)
	}
	d.take(d.s, added, -1)
	return l, len(l) == k
}

// chainsOf reads a model's chains out of a plan; a stage on a node that is no
// longer there has seat -1. Chains that do not fit the model as it is now are
// left out.
func (d *dealer) chainsOf(previous *Plan) layout {
	if previous == nil {
		return nil
	}
	var l layout
	for _, p := range previous.Pipelines {
		if p.Model != d.s.spec.ID {
			continue
		}
		var c chain
		next := 0
		for _, st := range p.Stages {
			seat, ok := d.index[st.Node]
			if !ok {
				seat = -1
			}
			if st.Layers.First != next || st.Layers.Last < next || st.Layers.Last >= d.s.layers {
				break
			}
			c = append(c, piece{seat, st.Layers.First, st.Layers.Last})
			next = st.Layers.Last + 1
		}
		if next == d.s.layers {
			l = append(l, c)
		}
	}
	return l
}
