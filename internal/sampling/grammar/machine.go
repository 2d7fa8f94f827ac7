package grammar

import (
	"fmt"
	"slices"
)

// Machine follows one answer through an automaton. Not safe for concurrent use.
type Machine struct {
	a      *Automaton
	frames []frame
	index  map[frame]int32
	now    state

	walkers []*state // memory of states, by depth of a walk
	scratch state
	after   state
	deepest int32 // rules within each other that any state entered so far needs
	work    int   // comparisons made since Allowed began
}

// frame is a rule that is under way: where it goes on when the rule that it
// called has ended. Frames are made once, so that equal stacks are equal numbers.
type frame struct{ back, below, depth int32 }

// bottom is the frame under the rule that the text starts with.
const bottom = 0

// thread is one way in which the text so far can be read.
type thread struct{ at, frame int32 }

// state is all of them. done says that the text may end here.
type state struct {
	threads []thread
	done    bool
}

// mostWork bounds the comparisons that finding what may follow takes, a fraction of
// a second. Patterns that can be read in very many ways would take hours.
const mostWork = 200_000_000

// maxFrames is when frames that nobody needs any more are forgotten.
const maxFrames = 1 << 15

// Start begins a text.
func (a *Automaton) Start() *Machine {
	m := &Machine{a: a}
	m.reset()
	m.enter(&m.now, a.start, bottom)
	return m
}

func (m *Machine) reset() {
	m.frames = append(m.frames[:0], frame{-1, -1, 0})
	m.index = map[frame]int32{}
}

func (m *Machine) push(back, below int32) int32 {
	f := frame{back, below, m.frames[below].depth + 1}
	id, ok := m.index[f]
	if !ok {
		id = int32(len(m.frames))
		m.frames = append(m.frames, f)
		m.index[f] = id
	}
	return id
}

// enter adds a node, and all that can be reached from it without taking anything.
func (m *Machine) enter(s *state, at, under int32) {
	t, n := thread{at, under}, &m.a.nodes[at]
	depth := m.frames[under].depth
	m.work += 1 + len(s.threads)
	if depth+n.need > MaxDepth || len(s.threads) >= maxThreads || slices.Contains(s.threads, t) {
		return
	}
	m.deepest = max(m.deepest, depth+n.need)
	s.threads = append(s.threads, t)
	for _, c := range n.calls {
		m.call(s, c, under)
	}
	if !n.end {
		return
	}
	if under == bottom {
		s.done = true
		return
	}
	f := m.frames[under]
	m.enter(s, f.back, f.below)
}

// call enters a rule that is called.
func (m *Machine) call(s *state, c call, under int32) {
	depth := m.frames[under].depth
	after := depth + m.a.nodes[c.to].need
	if after > MaxDepth || depth+c.frames()+m.a.nodes[c.start].need > MaxDepth {
		return
	}
	m.deepest = max(m.deepest, after)
	if !c.last {
		under = m.push(c.to, under)
	}
	m.enter(s, c.start, under)
}

// step takes one byte from a state into another one.
func (m *Machine) step(from []thread, b byte, to *state) {
	to.threads, to.done = to.threads[:0], false
	for _, t := range from {
		for _, mv := range m.a.nodes[t.at].moves {
			if mv.lo <= b && b <= mv.hi {
				m.enter(to, mv.to, t.frame)
			}
		}
	}
}

// Done says that the text may end here.
func (m *Machine) Done() bool { return m.now.done }

// Stuck says that the text cannot go on.
func (m *Machine) Stuck() bool {
	for _, t := range m.now.threads {
		if n := &m.a.nodes[t.at]; len(n.moves) > 0 || len(n.tokens) > 0 {
			return false
		}
	}
	return true
}

// Take moves on by one token. A token that the grammar does not allow here is an
// error, and the machine is then of no use.
func (m *Machine) Take(token int32) error {
	v := m.a.vocab
	if token < 0 || int(token) >= len(v.bytes) {
		return fmt.Errorf("grammar: token %d, the vocabulary has %d", token, len(v.bytes))
	}
	if v.IsEnd(token) {
		return fmt.Errorf("grammar: token %d ends the answer, but it went on", token)
	}
	if b := v.bytes[token]; len(b) > 0 {
		for i := range b {
			m.step(m.now.threads, b[i], &m.scratch)
			m.now, m.scratch = m.scratch, m.now
		}
	} else {
		m.takeControl(token)
	}
	if len(m.now.threads) == 0 {
		return fmt.Errorf("grammar: token %d does not fit what came before", token)
	}
	if len(m.frames) > maxFrames {
		m.compact()
	}
	return nil
}

func (m *Machine) takeControl(token int32) {
	to := &m.scratch
	to.threads, to.done = to.threads[:0], false
	for _, t := range m.now.threads {
		for _, mv := range m.a.nodes[t.at].tokens {
			if mv.token == token {
				m.enter(to, mv.to, t.frame)
			}
		}
	}
	m.now, m.scratch = m.scratch, m.now
}

// compact forgets all frames but those of the state.
func (m *Machine) compact() {
	old := slices.Clone(m.frames)
	m.reset()
	for i := range m.now.threads {
		m.now.threads[i].frame = m.again(old, m.now.threads[i].frame)
	}
}

// again makes a frame of old once more, from the bottom up.
func (m *Machine) again(old []frame, id int32) int32 {
	if id == bottom {
		return bottom
	}
	return m.push(old[id].back, m.again(old, old[id].below))
}
