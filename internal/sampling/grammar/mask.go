package grammar

import "math/bits"

// Mask is a set of tokens, a bit for each.
type Mask []uint64

// Has says whether a token is in the set.
func (m Mask) Has(token int32) bool {
	return uint32(token>>6) < uint32(len(m)) && m[token>>6]>>(token&63)&1 == 1
}

func (m Mask) add(token int32) { m[token>>6] |= 1 << (token & 63) }

// Count is the number of tokens in the set.
func (m Mask) Count() (n int) {
	for _, w := range m {
		n += bits.OnesCount64(w)
	}
	return n
}

// local is what a node accepts without leaving its rule.
type local struct {
	few   []int32 // the tokens, if they are few
	many  Mask    // else
	exits []int32 // nodes of the trie at which the rule may have ended
	deep  int32   // rules within each other that all this needs

	costly bool // it was not found out to the end: see mostWork
}

func (l *local) size() int { return 64 + 4*len(l.few) + 8*len(l.many) + 4*len(l.exits) }

// Allowed sets the tokens that may come next, the ends included; none where that
// takes more than mostWork, which is the same on every machine. The result is valid
// until the next call with the same memory, which may be nil.
func (m *Machine) Allowed(into Mask) Mask {
	v := m.a.vocab
	words := (len(v.bytes) + 63) / 64
	if cap(into) < words {
		into = make(Mask, words)
	}
	into = into[:words]
	clear(into)
	m.work = 0
	if m.now.done {
		for _, id := range v.ends {
			into.add(id)
		}
	}
	for _, t := range m.now.threads {
		m.allow(t, into)
	}
	if m.work > mostWork {
		clear(into)
	}
	return into
}

// allow adds what one thread accepts.
func (m *Machine) allow(t thread, into Mask) {
	if m.work > mostWork {
		return
	}
	n := &m.a.nodes[t.at]
	for _, mv := range n.tokens {
		into.add(mv.token)
	}
	if len(n.moves) == 0 {
		return
	}
	v := m.a.vocab
	l := v.localOf(m.a, t.at)
	if l.costly {
		m.work = mostWork + 1
		return
	}
	if m.frames[t.frame].depth+l.deep > MaxDepth { // the bound cuts some of it off
		m.walk([]thread{t}, 0, int32(len(v.trie)), 0, func(at int32, s *state) { v.addIDs(at, into) })
		return
	}
	l.addTo(into)
	after := &m.after
	after.threads = after.threads[:0]
	if t.frame != bottom {
		f := m.frames[t.frame]
		m.enter(after, f.back, f.below)
	}
	for _, at := range l.exits {
		v.addIDs(at, into)
		if len(after.threads) > 0 {
			e := &v.trie[at]
			m.walk(after.threads, at+1, e.end, e.depth, func(at int32, s *state) { v.addIDs(at, into) })
		}
	}
}

func (l *local) addTo(into Mask) {
	for _, id := range l.few {
		into.add(id)
	}
	for i, w := range l.many {
		into[i] |= w
	}
}

// addIDs adds the tokens that end at a node of the trie.
func (v *Vocabulary) addIDs(at int32, into Mask) {
	e := &v.trie[at]
	for _, id := range v.ids[e.ids : e.ids+e.len] {
		into.add(id)
	}
}

// walk follows the nodes from..to of the trie from a state that stands at depth,
// and visits those that the automaton can follow.
func (m *Machine) walk(from []thread, at, to, depth int32, visit func(int32, *state)) {
	trie := m.a.vocab.trie
	for at < to && m.work <= mostWork {
		e := &trie[at]
		level := int(e.depth - depth - 1)
		for len(m.walkers) <= level {
			m.walkers = append(m.walkers, &state{})
		}
		before := from
		if level > 0 {
			before = m.walkers[level-1].threads
		}
		s := m.walkers[level]
		m.step(before, e.b, s)
		if len(s.threads) == 0 {
			at = e.end
			continue
		}
		visit(at, s)
		at++
	}
}

// local finds out what a node accepts by itself, as if its rule were a whole
// text. Nested rules count from zero here; deep says how far they went.
func (a *Automaton) local(at int32) *local {
	m := &Machine{a: a}
	m.reset()
	v := a.vocab
	// The node alone: what its calls and its end add are threads of their own.
	start := []thread{{at, bottom}}
	l := &local{}
	m.walk(start, 0, int32(len(v.trie)), 0, func(at int32, s *state) {
		inside := false
		for _, t := range s.threads {
			n := &a.nodes[t.at]
			inside = inside || len(n.moves) > 0 || len(n.tokens) > 0
		}
		if inside {
			e := &v.trie[at]
			l.few = append(l.few, v.ids[e.ids:e.ids+e.len]...)
		}
		if s.done {
			l.exits = append(l.exits, at)
		}
	})
	l.deep, l.costly = m.deepest, m.work > mostWork
	if words := (len(v.bytes) + 63) / 64; len(l.few) > 2*words {
		l.many = make(Mask, words)
		for _, id := range l.few {
			l.many.add(id)
		}
		l.few = nil
	}
	return l
}
