package pool

// fairShare decides how long a lane keeps its turn.
//
// Off, or while there is no pressure: one frame each, so small frames never
// wait for more than one chunk of every other session.
//
// On and under pressure: deficit round robin. A turn is worth quantum bytes and
// what is left of it is kept, so sessions get equal bytes whatever their frame
// sizes; and no session may hold more than its share of the queue.
//
//	        fill >= enterPercent
//	calm ------------------------> pressed
//	     <------------------------
//	        fill <= leavePercent
//
// The distance between the two thresholds keeps the mode from flapping.
type fairShare struct {
	on      bool
	pressed bool
}

const (
	quantum      = 16 << 10 // bytes per turn
	frameCost    = 64       // bytes that a frame counts beside its payload
	enterPercent = 25
	leavePercent = 10
)

// update follows the queue's fill.
func (f *fairShare) update(percent int) {
	switch {
	case !f.on, percent <= leavePercent:
		f.pressed = false
	case percent >= enterPercent:
		f.pressed = true
	}
}

// mayGo grants the lane its turn's bytes once, and says whether its first frame
// fits into them. When it does not, the turn is over and the rest is kept; a
// frame of wire.MaxPayload fits after three turns at most.
func (f *fairShare) mayGo(l *lane) bool {
	if !l.turn {
		l.turn = true
		l.deficit += quantum
	}
	if len(l.head.b)+frameCost <= l.deficit {
		return true
	}
	l.turn = false
	return false
}

// limit is how many bytes one lane may hold; active lanes include the asking
// one.
func (f *fairShare) limit(maxBytes, active int) int {
	if !f.pressed {
		return maxBytes
	}
	return max(maxBytes/max(active, 1), 2*quantum)
}
