package swarm

import (
	"maps"
	"slices"
)

// advance makes one round over the nodes that wait for room: each frees what
// costs no promise and loads. When no node gets on that way, one layer goes
// whose loss costs least. False when nothing is left to load.
func (t *transit) advance() bool {
	moved := false
	for _, id := range slices.Sorted(maps.Keys(t.pending)) {
		if t.loadFitting(id) {
			moved = true
		}
		for len(t.pending[id]) > 0 {
			s, ok := t.leaving(id)
			if !ok {
				panic("BUG: a plan that gives node " + id + " more than its budget")
			}
			if t.grade(s) > 0 {
				break
			}
			t.unload(s)
			t.loadFitting(id)
			moved = true
		}
	}
	if len(t.pending) == 0 {
		return false
	}
	if !moved {
		t.makeRoom()
	}
	return true
}

// loadFitting loads what the node waits for, as far as there is room.
func (t *transit) loadFitting(id string) bool {
	var rest []spot
	waiting := t.pending[id]
	for _, s := range waiting {
		switch {
		case t.have[s]: // lent meanwhile
		case t.need(s) <= t.free[id]:
			t.load(s)
		default:
			rest = append(rest, s)
		}
	}
	t.pending[id] = rest
	if len(rest) == 0 {
		delete(t.pending, id)
	}
	return len(rest) < len(waiting)
}

// leaving is the most dispensable layer on a node that the new plan does not
// want there.
func (t *transit) leaving(id string) (spot, bool) {
	best, found := spot{}, false
	for s := range t.unwanted[id] {
		if !found || t.dispensable(s, best) < 0 {
			best, found = s, true
		}
	}
	return best, found
}

// makeRoom gives up the layer whose loss costs least on any node that waits.
// The last holder of a layer first tries to lend it to somebody with room.
func (t *transit) makeRoom() {
	best, found := spot{}, false
	for _, id := range slices.Sorted(maps.Keys(t.pending)) {
		if s, ok := t.leaving(id); ok && (!found || t.dispensable(s, best) < 0) {
			best, found = s, true
		}
	}
	if t.after(best) == 0 && t.lend(best) {
		return
	}
	t.unload(best)
}

// after is how many holders the layer keeps without the spot, as far as it
// matters: a layer that nobody promises keeps plenty.
func (t *transit) after(s spot) int {
	key := layerKey{s.model, s.layer}
	if t.promise[key] == 0 {
		return len(t.free) + 1
	}
	return t.holders[key] - 1
}

// dispensable orders layers by how little their unloading hurts: first those
// that leave the promise kept, then those that leave a holder, then the one
// with the fewest bytes to fetch again; idle ones before those with sessions.
func (t *transit) dispensable(a, b spot) int {
	x, y := t.grade(a), t.grade(b)
	if x != y {
		return x - y
	}
	if t.serving[a] != t.serving[b] {
		return truth(!t.serving[a])
	}
	if x == 2 {
		m, n := t.need(a), t.need(b)
		if m != n {
			return truth(m < n)
		}
	}
	return compareSpots(a, b)
}

func (t *transit) grade(s spot) int {
	switch left := t.after(s); {
	case left >= t.promise[layerKey{s.model, s.layer}]:
		return 0
	case left > 0:
		return 1
	}
	return 2
}

// lend loads a last holder's layer somewhere else with room, for the time
// being. False when no node has room, or the layer was lent before.
func (t *transit) lend(s spot) bool {
	best := ""
	for _, id := range slices.Sorted(maps.Keys(t.free)) {
		there := spot{id, s.model, s.layer}
		if id == s.node || t.have[there] || t.loaned[there] || t.need(s) > t.free[id] {
			continue
		}
		if best == "" || t.want[there] && !t.want[spot{best, s.model, s.layer}] {
			best = id
		}
	}
	if best == "" {
		return false
	}
	there := spot{best, s.model, s.layer}
	t.loaned[there] = true
	t.load(there)
	return true
}

// clearOut unloads what the new plan does not want, when all it wants is there.
func (t *transit) clearOut() {
	var all []spot
	for _, spots := range t.unwanted {
		for s := range spots {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, compareSpots)
	for _, s := range all {
		t.move(s)
	}
	for _, s := range all {
		t.unload(s)
	}
}

func (t *transit) load(s spot) {
	t.have[s] = true
	if !t.want[s] {
		t.unwant(s)
	}
	t.free[s.node] -= t.need(s)
	key := layerKey{s.model, s.layer}
	t.holders[key]++
	t.step(TransitionStep{Kind: StepLoad, Node: s.node, Model: s.model, Layers: LayerRange{s.layer, s.layer}, Bytes: t.need(s)})
	m := t.spec(s.model)
	t.out.LoadedBytes = addBytes(t.out.LoadedBytes, m.LayerWeight(s.layer))
	if begun, ok := t.open[key]; ok {
		delete(t.open, key)
		t.interrupted(key, begun, len(t.steps)-1)
	}
}

func (t *transit) unload(s spot) {
	t.move(s)
	delete(t.have, s)
	delete(t.unwanted[s.node], s)
	t.free[s.node] += t.need(s)
	key := layerKey{s.model, s.layer}
	t.holders[key]--
	t.step(TransitionStep{Kind: StepUnload, Node: s.node, Model: s.model, Layers: LayerRange{s.layer, s.layer}, Bytes: t.need(s)})
	if t.promise[key] == 0 {
		return
	}
	t.thin = min(t.thin, t.holders[key])
	if t.holders[key] == 0 {
		t.open[key] = len(t.steps) - 1
	}
}

// move hands the sessions of a spot to another holder: one whose pipeline the
// new plan knows, else one that stays, else any.
func (t *transit) move(s spot) {
	if !t.serving[s] {
		return
	}
	delete(t.serving, s)
	to := ""
	rank := -1
	for _, id := range slices.Sorted(maps.Keys(t.free)) {
		there := spot{id, s.model, s.layer}
		if id == s.node || !t.have[there] || t.promise[layerKey{s.model, s.layer}] == 0 {
			continue
		}
		r := 0
		if t.want[there] {
			r = 1
		}
		if t.stage(there) {
			r = 2
		}
		if r > rank {
			to, rank = id, r
		}
	}
	if to != "" {
		t.serving[spot{to, s.model, s.layer}] = true
	}
	t.step(TransitionStep{Kind: StepMove, Node: s.node, Model: s.model, Layers: LayerRange{s.layer, s.layer}, To: to})
}

// stage reports whether the new plan runs the spot in a pipeline.
func (t *transit) stage(s spot) bool {
	n, _ := t.to.Node(s.node)
	return slices.ContainsFunc(n.Fragments, func(f PlacedFragment) bool {
		return f.Model == s.model && !f.Spare && f.Layers.Contains(s.layer)
	})
}

func (t *transit) step(s TransitionStep) { t.steps = append(t.steps, s) }

func (t *transit) interrupted(key layerKey, begun, ended int) {
	m := t.spec(key.model)
	t.out.Interruptions = append(t.out.Interruptions, Interruption{
		Model: key.model, Layers: LayerRange{key.layer, key.layer}, From: begun, To: ended, Bytes: m.LayerWeight(key.layer),
	})
}

// result joins steps over neighbouring layers and renumbers the interruptions.
func (t *transit) result() TransitionPlan {
	for key, begun := range t.open {
		t.interrupted(key, begun, len(t.steps))
	}
	number := make([]int, len(t.steps)+1)
	for i, s := range t.steps {
		if n := len(t.out.Steps); n > 0 && t.out.Steps[n-1].joins(s) {
			last := &t.out.Steps[n-1]
			last.Layers.Last = s.Layers.Last
			last.Bytes = addBytes(last.Bytes, s.Bytes)
		} else {
			t.out.Steps = append(t.out.Steps, s)
		}
		number[i] = len(t.out.Steps) - 1
	}
	number[len(t.steps)] = len(t.out.Steps)
	for i := range t.out.Interruptions {
		x := &t.out.Interruptions[i]
		if x.From >= 0 {
			x.From = number[x.From]
		}
		x.To = number[x.To]
	}
	t.out.Interruptions = joinInterruptions(t.out.Interruptions)
	if t.out.Thinnest = t.thin; len(t.out.Interruptions) > 0 {
		t.out.Thinnest = 0
	}
	return t.out
}

func (s TransitionStep) joins(next TransitionStep) bool {
	return s.Kind == next.Kind && s.Node == next.Node && s.Model == next.Model && s.To == next.To &&
		s.Layers.Last+1 == next.Layers.First
}

func joinInterruptions(list []Interruption) []Interruption {
	slices.SortFunc(list, func(a, b Interruption) int {
		if c := slices.Compare([]string{a.Model}, []string{b.Model}); c != 0 {
			return c
		}
		return slices.Compare([]int{a.From, a.To, a.Layers.First}, []int{b.From, b.To, b.Layers.First})
	})
	var out []Interruption
	for _, x := range list {
		if n := len(out); n > 0 && out[n-1].Model == x.Model && out[n-1].From == x.From && out[n-1].To == x.To && out[n-1].Layers.Last+1 == x.Layers.First {
			out[n-1].Layers.Last = x.Layers.Last
			out[n-1].Bytes = addBytes(out[n-1].Bytes, x.Bytes)
			continue
		}
		out = append(out, x)
	}
	return out
}
