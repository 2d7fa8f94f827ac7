package swarm

import "slices"

// weave assembles the cheapest chain out of whatever parts of a model living
// nodes hold. Unlike a classic chain it may enter and leave a node's layers
// anywhere, so a chain exists exactly when every layer has a usable holder.
//
// A stage costs a constant and a price per layer. Between two neighbouring
// ends of held ranges nothing changes, so chains need to switch nodes only
// there. The dynamic programme runs backwards over these segments; per segment
// it keeps, for every holder, the cheapest way to the end given that the
// holder runs the segment, and over all holders the cheapest way to begin a
// stage. Switching to oneself is never cheaper than staying.
//
// It is scratch space: every run reuses its slices.
type weave struct {
	strands []strand
	cuts    []int32 // ends of segments, rising; the first is the window's first layer
	run     []run   // per strand: the best way on from the segment in hand
	stays   []bool  // per segment and strand: it runs the next segment too
	start   []int32 // per segment: the strand that best begins a stage there, -1 for none
	cost    Cost
}

// A strand is one node with the layers of the model that it may run.
type strand struct {
	node  int32
	id    string
	price nodePrice
	held  []heldRange // rising, apart from one another
	at    int         // index of the range that is looked at
}

type run struct {
	cost   Cost
	stages int32 // that follow this one
	ok     bool
}

func (w *weave) reset() {
	w.strands, w.cuts, w.cost = w.strands[:0], w.cuts[:0], Infinite
}

// collect takes every usable node that holds some of the window.
func (w *weave) collect(p *pricing) {
	w.reset()
	for i := range p.fleet.nodes {
		held := p.fleet.nodes[i].heldOf(p.model)
		if len(held) == 0 || p.available(int32(i)) != noObstacle {
			continue
		}
		w.add(p, int32(i), held)
	}
}

func (w *weave) add(p *pricing, node int32, held []heldRange) {
	w.strands = append(w.strands, strand{node: node, id: p.fleet.nodes[node].id, price: p.price(node), held: held})
}

// heldOf is the part of the held ranges that belongs to the model.
func (n *fleetNode) heldOf(model int32) []heldRange {
	lo := 0
	for lo < len(n.held) && n.held[lo].model != model {
		lo++
	}
	hi := lo
	for hi < len(n.held) && n.held[hi].model == model {
		hi++
	}
	return n.held[lo:hi]
}

// cut finds the segments of the window.
func (w *weave) cut(window LayerRange) {
	first, end := int32(window.First), int32(window.Last)+1
	w.cuts = append(w.cuts, first, end)
	for _, s := range w.strands {
		for _, h := range s.held {
			if h.first > first && h.first < end {
				w.cuts = append(w.cuts, h.first)
			}
			if h.last+1 > first && h.last+1 < end {
				w.cuts = append(w.cuts, h.last+1)
			}
		}
	}
	slices.Sort(w.cuts)
	w.cuts = slices.Compact(w.cuts)
}

// solve runs the dynamic programme; false when some layer has no strand.
func (w *weave) solve(window LayerRange) bool {
	w.cut(window)
	segments, n := len(w.cuts)-1, len(w.strands)
	w.run = reuse(w.run, n)
	w.stays = reuse(w.stays, n*segments)
	w.start = reuse(w.start, segments)
	for i := range w.strands {
		w.strands[i].at = len(w.strands[i].held) - 1
	}
	after := run{ok: true} // nothing is left to do behind the window
	for seg := segments - 1; seg >= 0; seg-- {
		after = w.segment(seg, after, seg == segments-1)
		if !after.ok {
			return false
		}
	}
	w.cost = after.cost
	return true
}

// reuse returns n zeroes in the memory of s, if that is large enough.
func reuse[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// segment extends every way to the end by one segment to the front. After is
// the cheapest way to begin a new stage behind it; the result is the same for
// its front.
func (w *weave) segment(seg int, after run, last bool) run {
	first, end := w.cuts[seg], w.cuts[seg+1]
	w.start[seg] = -1
	var best run
	for i := range w.strands {
		s := &w.strands[i]
		if !s.covers(first, end-1) {
			w.run[i].ok = false
			continue
		}
		way := after
		if !last {
			way.stages++
			if own := &w.run[i]; own.ok && !way.less(own) {
				way = *own
				w.stays[seg*len(w.strands)+i] = true
			}
		}
		way.cost = way.cost.Add(s.price.layer.Times(int(end - first)))
		w.run[i] = way
		begin := run{way.cost.Add(s.price.enter), way.stages, true}
		if at := w.start[seg]; at < 0 || begin.less(&best) || !best.less(&begin) && s.id < w.strands[at].id {
			best, w.start[seg] = begin, int32(i)
		}
	}
	return best
}

// covers reports whether the strand holds the segment. Segments are asked for
// from the last to the first and never straddle the end of a range.
func (s *strand) covers(first, last int32) bool {
	for s.at >= 0 && s.held[s.at].first > last {
		s.at--
	}
	return s.at >= 0 && s.held[s.at].first <= first && last <= s.held[s.at].last
}

func (r *run) less(other *run) bool {
	if r.cost != other.cost {
		return r.cost < other.cost
	}
	return r.stages < other.stages
}

// stages reads the chain off.
func (w *weave) stages(f *Fleet, window LayerRange) []Stage {
	out := make([]Stage, 0, 8)
	for seg := 0; seg < len(w.start); {
		i := int(w.start[seg])
		first := w.cuts[seg]
		for w.stays[seg*len(w.strands)+i] {
			seg++
		}
		seg++
		out = append(out, Stage{Node: f.nodes[w.strands[i].node].id, Layers: LayerRange{First: int(first), Last: int(w.cuts[seg]) - 1}})
	}
	return out
}

// gap is the first run of layers of the window that no strand holds.
func (w *weave) gap() (LayerRange, bool) {
	for seg, first := range w.cuts[:len(w.cuts)-1] {
		end := w.cuts[seg+1]
		if !slices.ContainsFunc(w.strands, func(s strand) bool {
			return slices.ContainsFunc(s.held, func(h heldRange) bool { return h.first <= first && end-1 <= h.last })
		}) {
			return LayerRange{First: int(first), Last: int(end) - 1}, true
		}
	}
	return unstated, false
}

// gap is the first run of layers that no usable node holds.
func (p *pricing) gap() (LayerRange, bool) {
	w := &p.fleet.weave
	w.collect(p)
	w.cut(p.window)
	return w.gap()
}
