package swarm

import (
	"math/bits"
	"sort"
)

// A sheet holds one model's sizes as running sums, so that the planner can ask
// for any range in constant time.
type sheet struct {
	spec   *ModelSpec
	layers int
	need   []int64 // need[i]: bytes of layers 0..i-1, KV included
	weight []int64 // the same without KV
	work   []int64 // the same as computing work, scaled so that the whole model is workUnits
}

// workUnits is the computing work of one whole pass through a model.
const workUnits = 1 << 20

func newSheet(spec *ModelSpec) *sheet {
	s := &sheet{spec: spec, layers: spec.Layers}
	s.need = make([]int64, spec.Layers+1)
	s.weight = make([]int64, spec.Layers+1)
	s.work = make([]int64, spec.Layers+1)
	for l := range spec.Layers {
		s.need[l+1] = s.need[l] + spec.LayerNeed(l)
		s.weight[l+1] = s.weight[l] + spec.LayerWeight(l)
	}
	// A lookup in the embedding costs no computing, so it is no work.
	total := s.weight[spec.Layers] - spec.EmbeddingBytes
	for l := 1; l <= spec.Layers; l++ {
		if total > 0 {
			s.work[l] = scale(s.weight[l]-spec.EmbeddingBytes, workUnits, total)
		} else {
			s.work[l] = int64(l) * workUnits / int64(spec.Layers)
		}
	}
	return s
}

func (s *sheet) total() int64 { return s.need[s.layers] }

// scale returns a*b/c without overflowing in between; a, b >= 0, c > 0 and the
// result must fit.
func scale(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return 1<<63 - 1
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	if q > 1<<63-1 {
		return 1<<63 - 1
	}
	return int64(q)
}

// A seat is one node as the planner sees it while it deals out layers.
type seat struct {
	profile NodeProfile
	usable  int64 // budget without headroom
	free    int64 // what nobody took yet
	latency Cost  // declared latency, weighted
	compute Cost  // price of computing one whole model, weighted
	busy    Cost  // computing of the models that were placed before
}

// workFor is how much work fits into limit on this node, fixed part included.
func (t *seat) workFor(limit Cost) int64 {
	left := limit - t.latency - t.busy
	switch {
	case limit == Infinite:
		return workUnits
	case left < 0:
		return -1
	case t.compute == 0:
		return workUnits
	}
	return min(workUnits, scale(int64(left), workUnits, int64(t.compute)))
}

// price is what a stage with this much work costs on the node, in the router's
// own terms: latency, plus the capacity term in proportion to the work.
func (t *seat) price(work int64) Cost {
	return t.latency.Add(t.busy).Add(Cost(scale(int64(t.compute), work, workUnits)))
}

// A desk is where one plan is worked out: seats in id order.
type desk struct {
	seats   []seat
	index   map[string]int
	hop     Cost
	weights Weights
}

func newDesk(nodes []NodeProfile, headroom func(budget int64) int64, w Weights) *desk {
	sorted := append([]NodeProfile(nil), nodes...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].ID < sorted[j].ID })
	d := &desk{seats: make([]seat, len(sorted)), index: make(map[string]int, len(sorted)), weights: w}
	d.hop = w.HopCost()
	for i, n := range sorted {
		usable := min(max(0, n.MemoryBytes-headroom(n.MemoryBytes)), maxNodeBytes)
		d.seats[i] = seat{
			profile: n, usable: usable, free: usable,
			latency: min(CostOf(float64(w.Latency*n.LatencyMS)), planningCeiling),
			compute: min(CostOf(float64(w.Capacity*capacityMS)/max(n.Score, leastScore)), planningCeiling),
		}
		d.index[n.ID] = i
	}
	return d
}

const (
	// planningCeiling bounds what one node may cost, so that sums over
	// thousands of stages stay numbers that can be compared.
	planningCeiling = 3_600_000 * Millisecond

	// maxNodeBytes is more than any machine has; sums of it stay positive.
	maxNodeBytes = int64(1) << 60
)

// reach returns the first layer that seat i cannot take any more when it
// starts at layer p with the given bytes and work left, at most layer limit.
func (s *sheet) reach(p, limit int, bytes, work int64) int {
	if work < 0 {
		return p
	}
	maxNeed, maxWork := s.need[p]+bytes, s.work[p]+work
	n := sort.Search(limit-p, func(i int) bool {
		return s.need[p+i+1] > maxNeed || s.work[p+i+1] > maxWork
	})
	return p + n
}

// back is reach in the other direction: the first layer of the longest run
// that ends before layer p.
func (s *sheet) back(p int, bytes, work int64) int {
	if work < 0 {
		return p
	}
	n := sort.Search(p, func(i int) bool {
		return s.need[p]-s.need[p-i-1] > bytes || s.work[p]-s.work[p-i-1] > work
	})
	return p - n
}
