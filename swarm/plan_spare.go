package swarm

import "sort"

// fillSpares gives what is left of every node to warm spare layers, so that a
// splice finds its substitute loaded: first the layers that the node held
// before (they cost no move), then the layers with the fewest holders.
//
// It goes on until no layer fits anywhere, which also makes planning again a
// no-op.
func (w *planWriter) fillSpares() {
	holders := make([][]int, len(w.specs))
	for m := range w.specs {
		holders[m] = make([]int, w.specs[m].Layers)
		for i := range w.seats {
			for _, h := range w.held[i][m] {
				for l := h.First; l <= h.Last; l++ {
					holders[m][l]++
				}
			}
		}
	}
	for i := range w.seats {
		s := &spareSeat{planWriter: w, seat: i, holders: holders}
		s.begin()
		s.keep()
	}
	for i := range w.seats {
		s := &spareSeat{planWriter: w, seat: i, holders: holders}
		s.begin()
		for m := range w.specs {
			if len(w.placing.layouts[m]) > 0 {
				s.fill(m)
			}
		}
		s.end()
	}
}

// A spareSeat is one node while its leftover is dealt out.
type spareSeat struct {
	*planWriter
	seat    int
	holders [][]int  // by model and layer, over all nodes
	has     [][]bool // by model and layer, on this node
}

func (s *spareSeat) begin() {
	s.has = make([][]bool, len(s.specs))
	for m := range s.specs {
		s.has[m] = make([]bool, s.specs[m].Layers)
		for _, h := range s.held[s.seat][m] {
			for l := h.First; l <= h.Last; l++ {
				s.has[m][l] = true
			}
		}
	}
}

// add takes one more layer if it fits and is not there yet.
func (s *spareSeat) add(m, layer int) bool {
	need := s.sheets[m].need[layer+1] - s.sheets[m].need[layer]
	if s.has[m][layer] || need > s.seats[s.seat].free {
		return false
	}
	s.has[m][layer] = true
	s.seats[s.seat].free -= need
	s.holders[m][layer]++
	s.held[s.seat][m] = append(s.held[s.seat][m], held{LayerRange{layer, layer}, true})
	return true
}

// keep retains what the node held by the previous plan.
func (s *spareSeat) keep() {
	if s.previous == nil {
		return
	}
	before, ok := s.previous.Node(s.name(s.seat))
	if !ok {
		return
	}
	for m := range s.specs {
		old, ok := s.previous.Model(s.specs[m].ID)
		if !ok || old.Layers != s.specs[m].Layers || len(s.placing.layouts[m]) == 0 {
			continue
		}
		for _, f := range before.Fragments {
			if f.Model != s.specs[m].ID {
				continue
			}
			for l := max(0, f.Layers.First); l <= f.Layers.Last && l < old.Layers; l++ {
				s.add(m, l)
			}
		}
	}
}

// fill adds runs of one model until nothing fits: each begins at the layer
// with the fewest holders and goes on as long as there is room.
func (s *spareSeat) fill(m int) {
	for {
		start := -1
		for l := range s.has[m] {
			need := s.sheets[m].need[l+1] - s.sheets[m].need[l]
			if s.has[m][l] || need > s.seats[s.seat].free {
				continue
			}
			if start < 0 || s.holders[m][l] < s.holders[m][start] {
				start = l
			}
		}
		if start < 0 {
			return
		}
		for l := start; l < len(s.has[m]) && s.add(m, l); l++ {
		}
	}
}

// end joins the spares of each model into runs and puts all ranges in order.
func (s *spareSeat) end() {
	for m := range s.specs {
		var serving []held
		var spares []LayerRange
		for _, h := range s.held[s.seat][m] {
			if h.spare {
				spares = append(spares, h.LayerRange)
			} else {
				serving = append(serving, h)
			}
		}
		for _, r := range mergeRanges(spares) {
			serving = append(serving, held{r, true})
		}
		sort.Slice(serving, func(a, b int) bool { return serving[a].First < serving[b].First })
		s.held[s.seat][m] = serving
	}
}
