package pool

// laneRing is an intrusive doubly linked ring of lanes: joining and leaving
// cost no memory. A lane may be in one ring of each index.
type laneRing struct {
	index int // which of a lane's places this ring uses
	head  *lane
	size  int
}

// The places of a lane.
const (
	inLanes  = 0
	inUrgent = 1
)

type lanePlace struct {
	next, prev *lane
	in         bool
}

func (r *laneRing) first() *lane { return r.head }

// add appends the lane unless it is in already.
func (r *laneRing) add(l *lane) {
	p := &l.place[r.index]
	if p.in {
		return
	}
	r.size++
	p.in = true
	if r.head == nil {
		r.head, p.next, p.prev = l, l, l
		return
	}
	tail := r.head.place[r.index].prev
	p.next, p.prev = r.head, tail
	tail.place[r.index].next = l
	r.head.place[r.index].prev = l
}

// remove takes the lane out; idempotent.
func (r *laneRing) remove(l *lane) {
	p := &l.place[r.index]
	if !p.in {
		return
	}
	r.size--
	if p.next == l {
		r.head = nil
	} else {
		p.prev.place[r.index].next = p.next
		p.next.place[r.index].prev = p.prev
		if r.head == l {
			r.head = p.next
		}
	}
	*p = lanePlace{}
}

// rotate makes the second lane the first.
func (r *laneRing) rotate() {
	if r.head != nil {
		r.head = r.head.place[r.index].next
	}
}
