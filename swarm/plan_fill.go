package swarm

import "sort"

// A dealer places the copies of one model on a desk.
type dealer struct {
	*desk
	s    *sheet
	held *holdings // what the nodes hold already; nil: nothing
}

// fits reports whether seat i may take at least one layer of the model.
func (d *dealer) fits(i int) bool {
	for l := range d.s.layers {
		if d.s.need[l+1]-d.s.need[l] <= d.seats[i].free {
			return true
		}
	}
	return false
}

// candidates are the seats that can hold any layer, by index.
func (d *dealer) candidates() []int {
	var out []int
	for i := range d.seats {
		if d.fits(i) {
			out = append(out, i)
		}
	}
	return out
}

// Slots number the layers of all copies one after the other: slot c*L+l is
// layer l of copy c. A seat that takes consecutive slots, at most L of them,
// never holds a layer twice; that is McNaughton's wrap-around rule, and it is
// why every layer ends on as many distinct seats as there are copies.

// reachSlots is how far seat i gets from slot pos, limit excluded, within its
// free bytes and the work that fits under the price cap.
func (d *dealer) reachSlots(i, pos, limit int, cap Cost) int {
	t, layers := &d.seats[i], d.s.layers
	bytes, work := t.free, t.workFor(cap)
	layer := pos % layers
	base := pos - layer
	end := d.s.reach(layer, min(layers, limit-base), bytes, work)
	if end < layers || base+layers >= limit {
		return base + end
	}
	bytes -= d.s.need[layers] - d.s.need[layer]
	work -= d.s.work[layers] - d.s.work[layer]
	return base + layers + d.s.reach(0, min(layer, limit-base-layers), bytes, work)
}

// fill deals the slots from..to-1 to the seats in order, each as much as it
// can, and returns the runs and the first slot nobody took. With align, a seat
// stops at the end of a copy when the seats after it can carry the rest: then
// two copies share no node there.
func (d *dealer) fill(order []int, from, to int, cap Cost, align bool) (runs []slotRun, end int) {
	pos := from
	for k, i := range order {
		if pos == to {
			break
		}
		end := d.reachSlots(i, pos, to, cap)
		if end == pos {
			continue
		}
		if edge := (pos/d.s.layers + 1) * d.s.layers; align && end > edge {
			if _, rest := d.fill(order[k+1:], edge, to, cap, false); rest == to {
				end = edge
			}
		}
		runs = append(runs, slotRun{i, pos, end})
		pos = end
	}
	return runs, pos
}

// A slotRun is a seat's share of the slots: from..to-1.
type slotRun struct{ seat, from, to int }

// layoutOf cuts runs over k copies into chains. Slots may begin at any layer:
// what the first copy lacks at its start is then what the runs hold beyond the
// last whole copy.
func (d *dealer) layoutOf(runs []slotRun, k int) layout {
	layers := d.s.layers
	l := make(layout, k)
	for _, r := range runs {
		for from := r.from; from < r.to; {
			edge := min(r.to, (from/layers+1)*layers)
			c := from / layers % k
			base := from / layers * layers
			l[c] = append(l[c], piece{r.seat, from - base, edge - 1 - base})
			from = edge
		}
	}
	for _, c := range l {
		sort.Slice(c, func(i, j int) bool { return c[i].first < c[j].first })
	}
	return l
}

// lowestCap finds the smallest price cap under which ok holds, between 0 and
// high, where it is known to hold.
func lowestCap(high Cost, ok func(Cost) bool) Cost {
	low := Cost(0)
	for low < high {
		mid := low + (high-low)/2
		if ok(mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return high
}

// balanced deals k copies over exactly these seats in this order so that the
// most loaded seat is as little loaded as the order allows.
func (d *dealer) balanced(order []int, from, k int) (layout, bool) {
	to := from + k*d.s.layers
	runs, end := d.fill(order, from, to, Infinite, true)
	if end < to {
		return nil, false
	}
	high := d.heaviest(runs)
	cap := lowestCap(high, func(c Cost) bool {
		_, end := d.fill(order, from, to, c, false)
		return end == to
	})
	// Seats carry more when their order is free to use all of them, so the
	// capped deal is never worse than the first one.
	if capped, end := d.fill(order, from, to, cap, true); end == to {
		runs = capped
	}
	return d.layoutOf(runs, k), true
}

// heaviest is the price of the most loaded run.
func (d *dealer) heaviest(runs []slotRun) Cost {
	var most Cost
	for _, r := range runs {
		most = max(most, d.seats[r.seat].price(d.workOf(r)))
	}
	return most
}

func (d *dealer) workOf(r slotRun) int64 {
	layers := d.s.layers
	at := func(slot int) int64 { return int64(slot/layers)*d.s.work[layers] + d.s.work[slot%layers] }
	return at(r.to) - at(r.from)
}

// bySpeed orders seats for dealing: quickest first, so that what is left for
// the last one is left for the slowest. Ties by latency, memory, then id.
func (d *dealer) bySpeed(seats []int) []int {
	out := append([]int(nil), seats...)
	sort.SliceStable(out, func(i, j int) bool {
		a, b := &d.seats[out[i]], &d.seats[out[j]]
		switch {
		case a.compute != b.compute:
			return a.compute < b.compute
		case a.latency != b.latency:
			return a.latency < b.latency
		case a.free != b.free:
			return a.free > b.free
		}
		return out[i] < out[j]
	})
	return out
}

// byMemory orders seats by free memory, largest first, then by id: among
// equals the biggest node is asked first.
func (d *dealer) byMemory(seats []int) []int {
	out := append([]int(nil), seats...)
	sort.SliceStable(out, func(i, j int) bool { return d.seats[out[i]].free > d.seats[out[j]].free })
	return out
}
