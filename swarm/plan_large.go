package swarm

import (
	"slices"
	"sort"
)

// apartLarge deals k copies that share no seat over many seats: first with
// memory as the only bound, which gives the number of stages, then under the
// lowest price cap that needs no more of them.
func (d *dealer) apartLarge(seats []int, k int) (layout, bool) {
	free, ok := d.greedy(seats, k, Infinite)
	if !ok {
		return nil, false
	}
	most := d.merit(d.s, free)
	cap := lowestCap(most.slowest, func(c Cost) bool {
		l, ok := d.greedy(seats, k, c)
		return ok && stagesOf(l) <= most.stages
	})
	if l, ok := d.greedy(seats, k, cap); ok && stagesOf(l) <= most.stages {
		return l, true
	}
	return free, true
}

func stagesOf(l layout) int {
	n := 0
	for _, c := range l {
		n += len(c)
	}
	return n
}

// A shelf keeps seats by how much of the model each can carry under a cap.
type shelf struct {
	seats []int
	units []int64     // by position: share of a whole model, in workUnits
	at    map[int]int // position of a seat
	used  []bool
	top   int // everything before it is used
}

func (d *dealer) shelve(seats []int, cap Cost) *shelf {
	s := &shelf{seats: append([]int(nil), seats...)}
	units := make(map[int]int64, len(seats))
	for _, i := range seats {
		units[i] = d.unitsOf(i, cap)
	}
	sort.SliceStable(s.seats, func(i, j int) bool {
		a, b := s.seats[i], s.seats[j]
		if units[a] != units[b] {
			return units[a] > units[b]
		}
		x, y := d.seats[a].price(workUnits), d.seats[b].price(workUnits)
		if x != y {
			return x < y
		}
		if d.seats[a].free != d.seats[b].free {
			return d.seats[a].free > d.seats[b].free
		}
		return a < b
	})
	s.units = make([]int64, len(s.seats))
	for p, i := range s.seats {
		s.units[p] = units[i]
	}
	s.at = make(map[int]int, len(s.seats))
	for p, i := range s.seats {
		s.at[i] = p
	}
	s.used = make([]bool, len(s.seats))
	return s
}

// unitsOf is the share of a whole model that seat i can carry under the cap,
// by bytes and by work, whichever is less. It only orders seats; what really
// fits is asked of reach.
func (d *dealer) unitsOf(i int, cap Cost) int64 {
	work := d.seats[i].workFor(cap)
	total := d.s.total()
	if work <= 0 || total == 0 || d.seats[i].free >= total {
		return work
	}
	return min(work, scale(d.seats[i].free, workUnits, total))
}

func (s *shelf) reset() {
	clear(s.used)
	s.top = 0
}

func (s *shelf) use(seat int) { s.used[s.at[seat]] = true }

// next is the position of the largest unused seat, or len when there is none.
func (s *shelf) next() int {
	for s.top < len(s.seats) && s.used[s.top] {
		s.top++
	}
	return s.top
}

// greedy builds k copies: the smallest seat that can hold all that a copy still
// lacks closes it; while there is none, the largest seat goes next. Built one
// after the other, the first copies take the large seats; built side by side,
// the copy that lacks most is always next. The way with fewer stages wins.
func (d *dealer) greedy(seats []int, k int, cap Cost) (layout, bool) {
	shelf := d.shelve(seats, cap)
	best, ok := d.copiesFrom(shelf, k, cap, firstOpen)
	if k == 1 {
		return best, ok
	}
	shelf.reset()
	beside, both := d.copiesFrom(shelf, k, cap, d.barest)
	if both && (!ok || stagesOf(beside) < stagesOf(best)) {
		best = beside
	}
	if !ok && !both {
		return nil, false
	}
	return d.rebuilt(shelf, best, cap), true
}

// rebuilt takes one copy after the other apart and builds it again from its
// own seats and those that nobody uses, as long as that saves a stage.
func (d *dealer) rebuilt(shelf *shelf, l layout, cap Cost) layout {
	for c := 0; c < len(l); c++ {
		shelf.reset()
		for other, ch := range l {
			for _, p := range ch {
				if other != c {
					shelf.use(p.seat)
				}
			}
		}
		again, ok := d.copiesFrom(shelf, 1, cap, firstOpen)
		if ok && len(again[0]) < len(l[c]) {
			l[c] = again[0]
			c = -1
		}
	}
	return l
}

// A gap is what a copy still lacks: the layers from..to-1.
type gap struct{ from, to int }

func firstOpen(gaps []gap) int {
	return slices.IndexFunc(gaps, func(g gap) bool { return g.from < g.to })
}

// barest is the copy that lacks the most bytes.
func (d *dealer) barest(gaps []gap) int {
	pick := -1
	var most int64
	for c, g := range gaps {
		if rest := d.s.need[g.to] - d.s.need[g.from]; g.from < g.to && (pick < 0 || rest > most) {
			pick, most = c, rest
		}
	}
	return pick
}

// copiesFrom builds copies until turn, which is told what each lacks, names
// none any more. A seat goes to the heavier end of the gap: the embedding and
// the head, which only large seats can hold, are then dealt first.
func (d *dealer) copiesFrom(shelf *shelf, k int, cap Cost, turn func([]gap) int) (layout, bool) {
	l := make(layout, k)
	gaps := slices.Repeat([]gap{{0, d.s.layers}}, k)
	for c := turn(gaps); c >= 0; c = turn(gaps) {
		p := d.closer(shelf, gaps[c], cap)
		if p < 0 {
			p = shelf.next()
		}
		if p >= len(shelf.seats) {
			return nil, false
		}
		shelf.used[p] = true
		if pc, ok := d.narrow(&gaps[c], shelf.seats[p], cap); ok {
			l[c] = append(l[c], pc)
		}
	}
	for _, c := range l {
		slices.SortFunc(c, func(a, b piece) int { return a.first - b.first })
	}
	return l, true
}

// narrow gives seat i as much of one end of the gap as it can take.
func (d *dealer) narrow(g *gap, i int, cap Cost) (piece, bool) {
	free, work := d.seats[i].free, d.seats[i].workFor(cap)
	end := d.s.reach(g.from, g.to, free, work)
	start := max(g.from, d.s.back(g.to, free, work))
	needs := func(l int) int64 { return d.s.need[l+1] - d.s.need[l] }
	if front := needs(g.from) >= needs(g.to-1); end > g.from && (front || start == g.to) {
		pc := piece{i, g.from, end - 1}
		g.from = end
		return pc, true
	}
	if start < g.to {
		pc := piece{i, start, g.to - 1}
		g.to = start
		return pc, true
	}
	return piece{}, false
}

// closer is the position of the seat that holds the whole gap and is not
// larger than needed; for a whole copy the quickest seat. -1: none does.
func (d *dealer) closer(shelf *shelf, g gap, cap Cost) int {
	rest := d.s.work[g.to] - d.s.work[g.from]
	if total := d.s.total(); total > 0 {
		rest = max(rest, scale(d.s.need[g.to]-d.s.need[g.from], workUnits, total))
	}
	// Rounding may hide a seat that just fits; one unit of slack finds it.
	fitting := sort.Search(len(shelf.units), func(i int) bool { return shelf.units[i] < rest-1 })
	best := -1
	for p := fitting - 1; p >= shelf.next(); p-- {
		i := shelf.seats[p]
		if shelf.used[p] || d.s.reach(g.from, g.to, d.seats[i].free, d.seats[i].workFor(cap)) < g.to {
			continue
		}
		if g.to-g.from < d.s.layers {
			return p
		}
		if best < 0 || d.seats[i].price(workUnits) <= d.seats[shelf.seats[best]].price(workUnits) {
			best = p
		}
	}
	return best
}
