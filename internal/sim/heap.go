package sim

// An event is something that will happen to a session or a node.
type event struct {
	at   int64  // virtual nanoseconds
	seq  uint32 // order of making: breaks ties, so that runs repeat
	who  int32  // session or node
	gen  uint32 // of the session: an older event is stale
	kind eventKind
}

type eventKind uint8

const (
	pieceDone eventKind = iota // a session's piece of work is done
	nodeDies
	nodeMissed // the gateway notices a death
	nodeReturns
)

func (e *event) before(o *event) bool {
	if e.at != o.at {
		return e.at < o.at
	}
	return int32(e.seq-o.seq) < 0 // the counter may wrap; ties are near one another
}

// agenda is a priority queue of events: a heap with four children per node,
// which halves the depth and keeps siblings in one cache line or two.
type agenda struct {
	heap []event
	made uint32
}

func (a *agenda) empty() bool { return len(a.heap) == 0 }

func (a *agenda) add(e event) {
	e.seq = a.made
	a.made++
	a.heap = append(a.heap, e)
	i := len(a.heap) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&a.heap[parent]) {
			break
		}
		a.heap[i] = a.heap[parent]
		i = parent
	}
	a.heap[i] = e
}

func (a *agenda) next() event {
	first := a.heap[0]
	end := len(a.heap) - 1
	e := a.heap[end]
	a.heap = a.heap[:end]
	if end > 0 {
		a.sink(e)
	}
	return first
}

// sink lets an event fall from the root to its place.
func (a *agenda) sink(e event) {
	h, i := a.heap, 0
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(h)); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if !h[least].before(&e) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = e
}
