package swarm

import (
	"fmt"
	"slices"
	"sort"
)

// A writer turns a finished placing into a plan.
type planWriter struct {
	*work
	plan     *Plan
	placing  placing
	previous *Plan
	held     [][][]held // by seat and model: layers held, in order
	serving  []bool     // by seat: part of some pipeline
}

// held is a run of layers on a seat.
type held struct {
	LayerRange
	spare bool
}

func (w *work) write(p placing, previous *Plan) *Plan {
	pw := &planWriter{work: w, plan: &Plan{Generation: 1}, placing: p, previous: previous}
	w.clear()
	pw.held = make([][][]held, len(w.seats))
	for i := range pw.held {
		pw.held[i] = make([][]held, len(w.specs))
	}
	pw.serving = make([]bool, len(w.seats))
	for m := range w.specs {
		pw.writeModel(m)
	}
	pw.fillSpares()
	pw.writeNodes()
	pw.writeRedundancy()
	pw.writeHurting()
	pw.writeIdle()
	pw.finish()
	return pw.plan
}

// writeModel books one model: what is missing, its pipelines, who is shared.
func (w *planWriter) writeModel(m int) {
	spec, l := &w.specs[m], w.placing.layouts[m]
	d := &dealer{desk: w.desk, s: w.sheets[m]}
	if len(l) < spec.Copies {
		w.plan.Unplaced = append(w.plan.Unplaced, w.unplaced(d, len(l)))
	}
	w.explain(d, l)
	d.take(d.s, l, 1)
	in := map[int][]int{}
	for _, c := range l {
		id := len(w.plan.Pipelines)
		p := Pipeline{ID: id, Model: spec.ID}
		for _, pc := range c {
			p.Stages = append(p.Stages, Stage{Node: w.name(pc.seat), Layers: LayerRange{pc.first, pc.last}})
			w.held[pc.seat][m] = append(w.held[pc.seat][m], held{LayerRange{pc.first, pc.last}, false})
			w.serving[pc.seat] = true
			if ids := in[pc.seat]; len(ids) == 0 || ids[len(ids)-1] != id {
				in[pc.seat] = append(ids, id)
			}
		}
		w.plan.Pipelines = append(w.plan.Pipelines, p)
	}
	for i := range w.seats {
		if ids := in[i]; len(ids) > 1 {
			w.plan.SharedNodes = append(w.plan.SharedNodes, SharedNode{w.name(i), spec.ID, ids})
		}
	}
}

func (d *desk) name(seat int) string { return d.seats[seat].profile.ID }

func (w *planWriter) unplaced(d *dealer, placed int) Unplaced {
	spec := d.s.spec
	seats := d.candidates()
	u := Unplaced{Model: spec.ID, Copies: spec.Copies - placed, ShortfallBytes: d.shortfall(seats, spec.Copies)}
	switch {
	case len(seats) < spec.Copies:
		u.Reason = fmt.Sprintf("%d copies need as many distinct nodes and %d could take part; %s of usable memory missing",
			spec.Copies, len(seats), FormatBytes(u.ShortfallBytes))
	case u.ShortfallBytes == 0:
		u.Reason = "gave way so that another model is served at all"
	default:
		u.Reason = fmt.Sprintf("%s of usable memory missing: one copy takes %s", FormatBytes(u.ShortfallBytes), FormatBytes(d.s.total()))
	}
	return u
}

// writeNodes lists what each node holds, ranges in order, runs of spares joined.
func (w *planWriter) writeNodes() {
	for i := range w.seats {
		t := &w.seats[i]
		n := NodePlan{Profile: t.profile, UsedBytes: t.usable - t.free, HeadroomBytes: t.profile.MemoryBytes - t.usable}
		if t.profile.MemoryBytes > 0 {
			n.Share = float64(n.UsedBytes) / float64(t.profile.MemoryBytes)
		}
		for m := range w.specs {
			for _, h := range w.held[i][m] {
				n.Fragments = append(n.Fragments, PlacedFragment{w.specs[m].ID, h.LayerRange, h.spare})
			}
		}
		sort.SliceStable(n.Fragments, func(a, b int) bool { return n.Fragments[a].Model < n.Fragments[b].Model })
		w.plan.Nodes = append(w.plan.Nodes, n)
	}
}

func (w *planWriter) writeRedundancy() {
	w.plan.Redundancy = map[string]Redundancy{}
	for m, l := range w.placing.layouts {
		if len(l) == 0 {
			continue
		}
		r := make(Redundancy, w.specs[m].Layers)
		for i := range w.seats {
			for _, h := range w.held[i][m] {
				for layer := h.First; layer <= h.Last; layer++ {
					r[layer] = append(r[layer], w.name(i))
				}
			}
		}
		w.plan.Redundancy[w.specs[m].ID] = r
	}
}

func (w *planWriter) writeHurting() {
	for m := range w.specs {
		r := w.plan.Redundancy[w.specs[m].ID]
		alone := map[string][]LayerRange{}
		for layer := range w.specs[m].Layers {
			if h := r[layer]; len(h) == 1 {
				alone[h[0]] = append(alone[h[0]], LayerRange{layer, layer})
			}
		}
		for i := range w.seats {
			if rs := alone[w.name(i)]; len(rs) > 0 {
				w.plan.Hurting = append(w.plan.Hurting, HurtingDeath{w.name(i), w.specs[m].ID, mergeRanges(rs)})
			}
		}
	}
}

// finish puts the models into id order, counts what moves and signs the plan.
func (w *planWriter) finish() {
	p := w.plan
	p.Models = slices.Clone(w.specs)
	sort.Slice(p.Models, func(i, j int) bool { return p.Models[i].ID < p.Models[j].ID })
	p.Hash = p.contentHash()
	p.MovedBytes = BytesToMove(w.previous, p)
	if w.previous == nil {
		return
	}
	p.Epoch, p.Generation = w.previous.Epoch, w.previous.Generation
	if p.Hash != w.previous.Hash {
		p.Generation++
	}
}

// BytesToMove is the bytes of weights that nodes must fetch to get from one
// plan to another; from may be nil: nothing is anywhere.
func BytesToMove(from, to *Plan) int64 {
	var sum int64
	for i := range to.Nodes {
		for _, f := range to.Nodes[i].Fragments {
			spec, ok := to.Model(f.Model)
			if !ok {
				continue
			}
			for layer := f.Layers.First; layer <= f.Layers.Last; layer++ {
				if from == nil || !from.holds(to.Nodes[i].Profile.ID, f.Model, layer) {
					sum = addBytes(sum, spec.LayerWeight(layer))
				}
			}
		}
	}
	return sum
}

func (p *Plan) holds(node, model string, layer int) bool {
	n, _ := p.Node(node)
	return slices.ContainsFunc(n.Fragments, func(f PlacedFragment) bool {
		return f.Model == model && f.Layers.Contains(layer)
	})
}
