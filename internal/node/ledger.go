package node

import "sync"

// ledger is how many cells each stage has, and for which gateway. A gateway knows
// its own reservations; from here it knows those of others, all at one moment.
type ledger struct {
	mu     sync.Mutex
	stages map[*running]entry
}

type entry struct {
	gateway, model string
	first, last    int
	cells          int
}

// note takes what a stage has now; 0 cells: it has ended.
func (l *ledger) note(r *running, cells int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cells == 0 {
		delete(l.stages, r)
		return
	}
	if l.stages == nil {
		l.stages = map[*running]entry{}
	}
	l.stages[r] = entry{r.gateway, r.open.Model, r.open.First, r.open.Last, cells}
}

// taken is how many cells each gateway has of a run of layers, on that layer of which
// the most are taken. It is never nil.
func (l *ledger) taken(model string, first, last int) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	layers := make([]map[string]int, last-first+1)
	for _, e := range l.stages {
		if e.model != model {
			continue
		}
		for i := max(e.first, first); i <= min(e.last, last); i++ {
			if layers[i-first] == nil {
				layers[i-first] = map[string]int{}
			}
			layers[i-first][e.gateway] += e.cells
		}
	}
	fullest, most := map[string]int{}, 0
	for _, by := range layers {
		sum := 0
		for _, n := range by {
			sum += n
		}
		if sum > most {
			fullest, most = by, sum
		}
	}
	return fullest
}
