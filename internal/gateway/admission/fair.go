package admission

import (
	"cmp"
	"math"
	"slices"
)

// MostPriority bounds priorities, in both directions.
const MostPriority = 3

// priorityStep is how much less a step of priority is charged.
const priorityStep = 4

// flowKey names what shares room: a key's requests of one priority.
type flowKey struct {
	key      string
	priority int
}

// weight is a flow's share against others.
func (k flowKey) weight() float64 { return math.Pow(priorityStep, float64(k.priority)) }

// fairness is the virtual clock of one queue. Virtual time counts cells; a flow
// that was charged for c cells is ahead of one that was not by c.
//
// It knows nothing once nobody waits: a share that was not asked for is not
// saved up.
type fairness struct {
	now   float64             // start of the last grant; never falls while somebody waits
	flows map[flowKey]float64 // where each flow's next request starts, when that is later than now
}

// enter charges a flow for a request and gives the virtual time it starts at.
func (f *fairness) enter(k flowKey, cells int) float64 {
	if f.flows == nil {
		f.flows = map[flowKey]float64{}
	}
	start := max(f.now, f.flows[k])
	f.flows[k] = start + k.charge(cells)
	return start
}

func (k flowKey) charge(cells int) float64 { return float64(cells) / k.weight() }

// bill charges a flow for what an answer of it got later.
func (f *fairness) bill(k flowKey, cells int) {
	if f.flows != nil {
		f.flows[k] = max(f.now, f.flows[k]) + k.charge(cells)
	}
}

// refund takes a charge back: the request left unserved.
func (f *fairness) refund(k flowKey, cells int) {
	f.flows[k] -= k.charge(cells)
}

// serve notes that a request which started then was granted.
func (f *fairness) serve(start float64) { f.now = max(f.now, start) }

// forget drops flows without a memory worth keeping: those the clock has passed
// and, beyond a number, those it will pass first. Waits says which flows have
// requests in the queue.
func (f *fairness) forget(most int, waits func(flowKey) bool) {
	if len(f.flows) <= most {
		return
	}
	var idle []flowKey
	for k, next := range f.flows {
		switch {
		case waits(k):
		case next <= f.now:
			delete(f.flows, k)
		default:
			idle = append(idle, k)
		}
	}
	if len(idle) <= most {
		return
	}
	slices.SortFunc(idle, func(a, b flowKey) int {
		return cmp.Or(cmp.Compare(f.flows[a], f.flows[b]), cmp.Compare(a.key, b.key), cmp.Compare(a.priority, b.priority))
	})
	for _, k := range idle[:len(idle)-most/2] {
		delete(f.flows, k)
	}
}

// reset forgets everything.
func (f *fairness) reset() { f.now, f.flows = 0, nil }
