package control

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"hecate/swarm"
)

// Holdings are the layer ranges that nodes hold, by node id. Ranges of one
// model do not overlap.
type Holdings map[string][]swarm.Fragment

// A Stage is what a new plan must not yet do, so that on the way to it every
// layer that was served keeps a living holder and every node stays within its
// budget. Nodes follow the plan except for this.
type Stage struct {
	// Keep: held, not in the plan any more, and still needed.
	Keep Holdings `json:"keep,omitempty"`
	// Wait: in the plan, and there is no room for it yet.
	Wait Holdings `json:"wait,omitempty"`
	// Interrupted names layers that lose their last holder, because there is
	// no order of steps that avoids it: the smallest set found.
	Interrupted []swarm.Fragment `json:"interrupted,omitempty"`
}

// Empty reports whether the plan may simply be followed.
func (s Stage) Empty() bool {
	return len(s.Keep) == 0 && len(s.Wait) == 0 && len(s.Interrupted) == 0
}

// StageOf looks at what living nodes really hold and says what may happen now.
// It is level-triggered: called again whenever what is held has changed, it
// leads to the plan in as many stages as that takes, each with these steps:
//
//  1. A layer is loaded as soon as it fits beside everything that is kept.
//  2. A layer that the plan takes away goes when all of its new holders have
//     it; or earlier, when the node needs the room and somebody else holds it.
//     A model for which nobody is left with room stays on nodes that are to be
//     emptied, and so whole, as long as its own room is not needed.
//  3. Where neither is possible anywhere, and something still has to be
//     loaded, the node that is short of the least drops what it must.
func StageOf(plan *swarm.Plan, have Holdings) Stage {
	w := newWaypoint(plan, have)
	loading := w.admitLoads()
	dropping := w.releaseSpares() + w.releaseForRoom()
	var lost []swarm.Fragment
	if w.pending() && loading+dropping == 0 {
		lost = w.interrupt()
	}
	return Stage{Keep: w.kept(), Wait: w.waiting(), Interrupted: lost}
}

// layer is one layer of one model.
type layer struct {
	model string
	index int
}

// A waypoint is where a transition is: per node, layer by layer.
type waypoint struct {
	plan   *swarm.Plan
	nodes  []string // in id order: everything is decided in this order
	have   map[string]map[layer]bool
	want   map[string]map[layer]bool
	room   map[string]int64   // bytes left beside what is held and admitted
	load   map[string][]layer // wanted, not held, not admitted yet
	drop   map[string][]layer // held, not wanted, not released yet
	hold   map[layer]int      // living holders that stay at least for now
	target map[layer]int      // how many the plan wants
	freed  map[string]int64   // bytes that releases will free
	specs  map[string]swarm.ModelSpec
	stays  map[string]bool // models that nobody can take over: see stranded
}

func newWaypoint(plan *swarm.Plan, have Holdings) *waypoint {
	w := &waypoint{
		plan: plan, have: map[string]map[layer]bool{}, want: map[string]map[layer]bool{}, room: map[string]int64{},
		load: map[string][]layer{}, drop: map[string][]layer{}, hold: map[layer]int{}, target: map[layer]int{},
		freed: map[string]int64{}, specs: map[string]swarm.ModelSpec{},
	}
	for _, m := range plan.Models {
		w.specs[m.ID] = m
	}
	for _, n := range plan.Nodes {
		w.nodes = append(w.nodes, n.Profile.ID)
		w.room[n.Profile.ID] = n.Profile.MemoryBytes
		w.want[n.Profile.ID] = map[layer]bool{}
		for _, f := range n.Fragments {
			for l := f.Layers.First; l <= f.Layers.Last; l++ {
				w.want[n.Profile.ID][layer{f.Model, l}] = true
				w.target[layer{f.Model, l}]++
			}
		}
	}
	known := len(w.nodes)
	for _, node := range slices.Sorted(maps.Keys(have)) {
		w.take(node, have[node])
	}
	w.stays = w.stranded(w.nodes[known:])
	for _, node := range w.nodes {
		for _, l := range sortedLayers(w.want[node]) {
			if !w.have[node][l] {
				w.load[node] = append(w.load[node], l)
			}
		}
	}
	return w
}

// take notes what one node holds. A node that the plan does not know (it is
// leaving, or is not believed) still counts as a holder until it is released.
func (w *waypoint) take(node string, held []swarm.Fragment) {
	if _, known := w.want[node]; !known {
		w.nodes = append(w.nodes, node)
		w.want[node] = map[layer]bool{}
	}
	w.have[node] = map[layer]bool{}
	for _, f := range held {
		for l := f.Layers.First; l <= f.Layers.Last; l++ {
			w.have[node][layer{f.Model, l}] = true
		}
	}
	for _, l := range sortedLayers(w.have[node]) {
		w.hold[l]++
		w.room[node] -= w.need(l)
		if !w.want[node][l] {
			w.drop[node] = append(w.drop[node], l)
		}
	}
}

// stranded are the models that are whole now, that the plan places nowhere, and of
// which nodes hold something that the plan does not count on: it is not that others
// come first, but that these are to be emptied and nobody has the room.
func (w *waypoint) stranded(emptied []string) map[string]bool {
	out := map[string]bool{}
	for id, m := range w.specs {
		whole, placed, left := true, false, false
		for i := range m.Layers {
			l := layer{id, i}
			whole, placed = whole && w.hold[l] > 0, placed || w.target[l] > 0
			left = left || slices.ContainsFunc(emptied, func(node string) bool { return w.have[node][l] })
		}
		out[id] = whole && !placed && left
	}
	return out
}

// need is what a layer takes from a budget; of a model that left the
// catalogue nothing is known, and nothing has to be.
func (w *waypoint) need(l layer) int64 {
	spec, ok := w.specs[l.model]
	if !ok || l.index >= spec.Layers {
		return 0
	}
	return spec.LayerNeed(l.index)
}

// admitLoads lets every node load what fits now.
func (w *waypoint) admitLoads() (admitted int) {
	for _, node := range w.nodes {
		w.load[node] = slices.DeleteFunc(w.load[node], func(l layer) bool {
			if w.need(l) > w.room[node] {
				return false
			}
			w.room[node] -= w.need(l)
			admitted++
			return true
		})
	}
	return admitted
}

// releaseSpares lets go what is not needed: of layers that as many nodes hold
// as the plan wants, not counting those that are to let go.
func (w *waypoint) releaseSpares() (released int) {
	for _, node := range w.nodes {
		w.drop[node] = slices.DeleteFunc(w.drop[node], func(l layer) bool {
			if w.settled(l) < w.target[l] || w.stays[l.model] {
				return false
			}
			w.release(node, l)
			released++
			return true
		})
	}
	return released
}

// settled counts the nodes that hold a layer and shall go on doing so.
func (w *waypoint) settled(l layer) (n int) {
	for _, node := range w.nodes {
		if w.have[node][l] && w.want[node][l] {
			n++
		}
	}
	return n
}

// releaseForRoom lets go what somebody else holds as well, where the room is
// needed: first the layers with the most holders.
func (w *waypoint) releaseForRoom() (released int) {
	for _, node := range w.nodes {
		for w.short(node) > 0 {
			best := -1
			for i, l := range w.drop[node] {
				if w.hold[l] > 1 && (best < 0 || w.hold[l] > w.hold[w.drop[node][best]]) {
					best = i
				}
			}
			if best < 0 {
				break
			}
			w.release(node, w.drop[node][best])
			w.drop[node] = slices.Delete(w.drop[node], best, best+1)
			released++
		}
	}
	return released
}

// short is how many bytes a node still lacks for what it has to load.
func (w *waypoint) short(node string) int64 {
	var need int64
	for _, l := range w.load[node] {
		need += w.need(l)
	}
	return need - max(w.room[node], 0) - w.freed[node]
}

func (w *waypoint) release(node string, l layer) {
	w.hold[l]--
	w.freed[node] += w.need(l)
}

// pending reports whether something still has to be loaded and may not.
func (w *waypoint) pending() bool {
	for _, node := range w.nodes {
		if len(w.load[node]) > 0 {
			return true
		}
	}
	return false
}

// interrupt makes room where the fewest layers lose their last holder.
func (w *waypoint) interrupt() []swarm.Fragment {
	best, fewest := "", 0
	for _, node := range w.nodes {
		if len(w.load[node]) == 0 || len(w.drop[node]) == 0 {
			continue
		}
		if n := len(w.sacrifice(node)); best == "" || n < fewest {
			best, fewest = node, n
		}
	}
	if best == "" {
		return nil // the plan itself does not fit; it was not validated
	}
	lost := w.sacrifice(best)
	gone := map[layer]bool{}
	for _, l := range lost {
		w.release(best, l)
		gone[l] = true
	}
	w.drop[best] = slices.DeleteFunc(w.drop[best], func(l layer) bool { return gone[l] })
	return fragments(gone)
}

// sacrifice is what a node must drop to load the first layer that waits.
func (w *waypoint) sacrifice(node string) (out []layer) {
	missing := w.need(w.load[node][0]) - w.room[node]
	for _, l := range w.drop[node] {
		if missing <= 0 {
			break
		}
		out = append(out, l)
		missing -= w.need(l)
	}
	return out
}

func (w *waypoint) kept() Holdings    { return rangesOf(w.drop) }
func (w *waypoint) waiting() Holdings { return rangesOf(w.load) }

func rangesOf(layers map[string][]layer) Holdings {
	out := Holdings{}
	for node, list := range layers {
		set := map[layer]bool{}
		for _, l := range list {
			set[l] = true
		}
		if f := fragments(set); len(f) > 0 {
			out[node] = f
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// fragments joins single layers to ranges, in order.
func fragments(set map[layer]bool) []swarm.Fragment {
	var out []swarm.Fragment
	for _, l := range sortedLayers(set) {
		if n := len(out); n > 0 && out[n-1].Model == l.model && out[n-1].Layers.Last+1 == l.index {
			out[n-1].Layers.Last = l.index
			continue
		}
		out = append(out, swarm.Fragment{Model: l.model, Layers: swarm.LayerRange{First: l.index, Last: l.index}})
	}
	return out
}

func sortedLayers(set map[layer]bool) []layer {
	return slices.SortedFunc(maps.Keys(set), func(a, b layer) int {
		if a.model != b.model {
			return strings.Compare(a.model, b.model)
		}
		return a.index - b.index
	})
}

// String says in one line what holds the plan up.
func (s Stage) String() string {
	var parts []string
	for _, p := range []struct {
		what string
		h    Holdings
	}{{"keeps", s.Keep}, {"waits for room for", s.Wait}} {
		for _, node := range slices.Sorted(maps.Keys(p.h)) {
			parts = append(parts, fmt.Sprintf("%s %s %s", node, p.what, describeFragments(p.h[node])))
		}
	}
	if len(s.Interrupted) > 0 {
		parts = append(parts, "interrupted: "+describeFragments(s.Interrupted))
	}
	return strings.Join(parts, ", ")
}

func describeFragments(fs []swarm.Fragment) string {
	var parts []string
	for _, f := range fs {
		parts = append(parts, fmt.Sprintf("%s[%d-%d]", f.Model, f.Layers.First, f.Layers.Last))
	}
	return strings.Join(parts, ",")
}
