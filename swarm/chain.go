package swarm

import (
	"cmp"
	"slices"
)

// A span is a fragment of a node, by the node's index.
type span struct{ node, first, last int32 }

// A tail is the best way on to the end of the window for somebody who stands
// at a boundary on a known node: what it costs, in how many further stages,
// how many layers the node itself still runs, and the first new stage.
type tail struct {
	cost   Cost
	stages int32
	ext    int32 // layers that the current stage goes on for
	next   int32 // the head that follows it, -1 at the end of the window
}

// A head is where a stage may begin: a node that holds fragments starting at
// a boundary. Its tail includes those fragments.
type head struct {
	node int32
	best tail
	ok   bool // some chain from here reaches the end of the window
}

// chains is the dynamic programme behind ScoreRoute. It runs backwards, over
// (boundary, node of the last fragment): for staying, every such value counts;
// for switching, the two cheapest distinct nodes of a boundary are enough,
// since at most one of them is the node that would switch to itself.
//
// Backwards, because ties are decided from the first stage on: what a choice
// leads to is then already ordered, and only equals are compared further.
type chains struct {
	window LayerRange
	nodes  []string // by index, in the order of the ids
	price  []Cost   // by index
	hop    Cost

	spans   []span  // usable ones, by first layer, then node
	heads   []head  // by first layer, then node
	spanAt  []int32 // where the spans of a boundary begin; one entry more than boundaries
	headAt  []int32 // the same for heads
	firstOf []int32 // by head: its first span; one entry more than heads
	two     [][2]int32
}

// index sorts the usable spans by boundary. Spans come in by node, so a stable
// counting sort keeps the nodes of one boundary in order.
func (c *chains) index(spans []span) {
	first, last := int32(c.window.First), int32(c.window.Last)
	c.spanAt = make([]int32, c.window.Len()+2)
	usable := 0
	for _, s := range spans {
		if s.first >= first && s.last <= last {
			c.spanAt[s.first-first+1]++
			usable++
		}
	}
	for i := 1; i < len(c.spanAt); i++ {
		c.spanAt[i] += c.spanAt[i-1]
	}
	c.spans = make([]span, usable)
	at := slices.Clone(c.spanAt)
	for _, s := range spans {
		if s.first >= first && s.last <= last {
			c.spans[at[s.first-first]] = s
			at[s.first-first]++
		}
	}
	c.group()
}

// group makes one head of the spans that share boundary and node.
func (c *chains) group() {
	c.headAt = make([]int32, len(c.spanAt))
	c.heads = make([]head, 0, len(c.spans))
	c.firstOf = make([]int32, 0, len(c.spans)+1)
	for b := range c.window.Len() {
		c.headAt[b] = int32(len(c.heads))
		for i := c.spanAt[b]; i < c.spanAt[b+1]; i++ {
			if i == c.spanAt[b] || c.spans[i].node != c.spans[i-1].node {
				c.heads = append(c.heads, head{node: c.spans[i].node})
				c.firstOf = append(c.firstOf, i)
			}
		}
	}
	c.headAt[c.window.Len()] = int32(len(c.heads))
	c.firstOf = append(c.firstOf, int32(len(c.spans)))
}

// solve fills in every head, last boundary first, and returns the best head at
// the start of the window, -1 when none leads to its end.
func (c *chains) solve() int32 {
	c.two = make([][2]int32, c.window.Len())
	for b := c.window.Len() - 1; b >= 0; b-- {
		two := [2]int32{-1, -1}
		for h := c.headAt[b]; h < c.headAt[b+1]; h++ {
			c.settle(h)
			if c.heads[h].ok {
				two = c.insert(two, h)
			}
		}
		c.two[b] = two
	}
	return c.two[0][0]
}

// settle finds the best way on for one head over all its spans.
func (c *chains) settle(h int32) {
	hd := &c.heads[h]
	for _, s := range c.spans[c.firstOf[h]:c.firstOf[h+1]] {
		t, ok := c.from(int(s.last)+1-c.window.First, s.node)
		if !ok {
			continue
		}
		t.ext += s.last - s.first + 1
		if !hd.ok || c.compare(t, hd.best) < 0 {
			hd.best, hd.ok = t, true
		}
	}
}

// from is the best tail for a node that stands at boundary b.
func (c *chains) from(b int, node int32) (tail, bool) {
	if b == c.window.Len() {
		return tail{next: -1}, true
	}
	best, ok := tail{}, false
	if own := c.find(b, node); own >= 0 && c.heads[own].ok {
		best, ok = c.heads[own].best, true
	}
	other := c.two[b][0]
	if other >= 0 && c.heads[other].node == node {
		other = c.two[b][1]
	}
	if other < 0 {
		return best, ok
	}
	there := &c.heads[other].best
	change := tail{cost: c.startCost(other).Add(c.hop), stages: there.stages + 1, next: other}
	if !ok || c.compare(change, best) < 0 {
		return change, true
	}
	return best, true
}

// find is the head of that node at boundary b, -1 when it has none.
func (c *chains) find(b int, node int32) int32 {
	lo, hi := c.headAt[b], c.headAt[b+1]
	for lo < hi {
		mid := lo + (hi-lo)/2
		if c.heads[mid].node < node {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < c.headAt[b+1] && c.heads[lo].node == node {
		return lo
	}
	return -1
}

// startCost is the price of beginning a stage at a head and going on to the end.
func (c *chains) startCost(h int32) Cost {
	return c.heads[h].best.cost.Add(c.price[c.heads[h].node])
}

// insert keeps the two best heads of a boundary. Heads come in the order of
// their nodes, so an equal one that comes later is the worse one.
func (c *chains) insert(two [2]int32, h int32) [2]int32 {
	switch {
	case two[0] < 0 || c.cheaper(h, two[0]):
		return [2]int32{h, two[0]}
	case two[1] < 0 || c.cheaper(h, two[1]):
		return [2]int32{two[0], h}
	}
	return two
}

func (c *chains) cheaper(a, b int32) bool {
	ca, cb := c.startCost(a), c.startCost(b)
	return ca < cb || (ca == cb && c.heads[a].best.stages < c.heads[b].best.stages)
}

// compare orders two ways on for the same node at the same boundary: cost,
// stages, node ids, then longer stages first.
func (c *chains) compare(a, b tail) int {
	if d := cmp.Compare(a.cost, b.cost); d != 0 {
		return d
	}
	if d := cmp.Compare(a.stages, b.stages); d != 0 {
		return d
	}
	// Both have as many stages. Once they share a head they are the same.
	for x, y := a.next, b.next; x != y; x, y = c.heads[x].best.next, c.heads[y].best.next {
		if d := cmp.Compare(c.heads[x].node, c.heads[y].node); d != 0 {
			return d
		}
	}
	// As many layers for the stage in hand lead to the same boundary, and so to
	// the same head: nothing further can differ.
	return cmp.Compare(b.ext, a.ext)
}

// stages reads the route off, beginning at a head at the start of the window.
func (c *chains) stages(h int32) []Stage {
	out := make([]Stage, 0, c.heads[h].best.stages+1)
	for first := c.window.First; h >= 0; h = c.heads[h].best.next {
		last := first + int(c.heads[h].best.ext) - 1
		out = append(out, Stage{Node: c.nodes[c.heads[h].node], Layers: LayerRange{First: first, Last: last}})
		first = last + 1
	}
	return out
}

// furthest is the highest boundary, as a layer, that chains from the start of
// the window reach.
func (c *chains) furthest() int {
	reached := make([]bool, c.window.Len()+1)
	reached[0] = true
	far := 0
	for _, s := range c.spans {
		if reached[int(s.first)-c.window.First] {
			end := int(s.last) + 1 - c.window.First
			reached[end] = true
			far = max(far, end)
		}
	}
	return c.window.First + far
}
