package sim

import "hecate/swarm"

// A session is one request on its way. Slots of finished sessions are used
// again, legs included.
type session struct {
	state    sessionState
	arrival  int32 // index of the request
	gateway  int32
	gen      uint32 // events of an older generation are stale
	route    swarm.Route
	legs     []leg
	lease    *swarm.Lease
	unread   int32 // tokens that are still to be read before decoding (goes on)
	emitted  int32 // tokens of the answer so far
	piece    int32 // tokens in the running piece
	began    int64 // of the running piece
	each     float64
	stalled  int64 // when the node died that it waits for
	resuming bool  // no token since the rescue
	rescued  bool
}

// A sessionState says what a session is doing.
//
//	free -- arrives --> reading --> decoding -- answer complete --> free
//	reading, decoding -- a node dies --> stalled -- rescued --> reading
//	stalled -- no rescue --> free
type sessionState uint8

const (
	free     sessionState = iota // the slot is not in use
	reading                      // prompt tokens are read
	decoding                     // the answer is generated
	stalled                      // a node of the route is dead and nobody has noticed
)

// A leg is one stage of a session's route as it is run.
type leg struct {
	node   int32
	layers int32
	fresh  int32   // of the layers, those that must read what was there before
	share  float64 // of the session's time that it spends here
}

// readPiece is how many prompt tokens are read before the batches are looked
// at again.
const readPiece = 256

// plot lays a session's legs along its route. After a splice only the replaced
// layers must read again.
func (w *world) plot(s *session) {
	s.legs = s.legs[:0]
	total := 0.0
	for _, st := range s.route.Stages {
		n := w.index[st.Node]
		m := &w.machines[n]
		l := leg{node: n, layers: int32(st.Layers.Len())}
		l.fresh = l.layers
		if len(s.route.Replaced) > 0 {
			l.fresh = replacedIn(s.route.Replaced, st)
		}
		l.share = float64(l.layers) * m.layer
		total += l.share + m.link
		s.legs = append(s.legs, l)
	}
	for i := range s.legs {
		s.legs[i].share /= total
	}
}

// replacedIn counts the layers of a stage that are new to its node.
func replacedIn(replaced []swarm.Replacement, st swarm.Stage) int32 {
	n := 0
	for _, r := range replaced {
		if c, ok := r.Layers.Clip(st.Layers); ok && r.By == st.Node {
			n += c.Len()
		}
	}
	return int32(n)
}

// pace is the time in nanoseconds that one token takes now: to be read, or to
// be generated.
func (w *world) pace(s *session) float64 {
	each := 0.0
	for i := range s.legs {
		l := &s.legs[i]
		m := &w.machines[l.node]
		slow := w.Hardware.slowdown(1 + max(0, m.present-l.share))
		if s.state == reading {
			each += float64(l.fresh) * m.token * slow
			continue
		}
		step := float64(l.layers) * m.layer * slow
		m.step = step / 1e6
		each += step + m.link
	}
	return each
}

// roundTrip is one time around all legs, in nanoseconds.
func (w *world) roundTrip(s *session) float64 {
	sum := 0.0
	for i := range s.legs {
		sum += w.machines[s.legs[i].node].link
	}
	return sum
}
