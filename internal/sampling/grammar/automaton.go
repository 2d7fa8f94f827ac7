package grammar

import (
	"crypto/sha256"
	"fmt"
	"math"
	"sync"
)

// Automaton is a compiled grammar. It is immutable, but for what its vocabulary
// remembers of it, and safe for concurrent use.
type Automaton struct {
	vocab   *Vocabulary
	grammar *Grammar
	rules   []string // in order
	nodes   []node
	start   int32

	keys sync.Map // rule's number -> the key of its content
}

// node is a place within a rule. Moves that take nothing are worked in.
type node struct {
	moves  []move
	tokens []tokenMove
	calls  []call
	end    bool  // the rule may end here
	need   int32 // nested rules without which it cannot end

	rule int32 // its number in Automaton.rules
	at   int32 // number within the rule
}

type move struct {
	lo, hi byte
	to     int32
}

type tokenMove struct{ token, to int32 }

// call is a rule that is called. Nothing comes after the last one of a rule, so
// that it needs no frame: lists may be as long as they like.
type call struct {
	start, to int32
	last      bool
}

// endless is the need of a node from which its rule never ends.
const endless = math.MaxInt32

// compile turns a valid grammar into an automaton.
func compile(g *Grammar, v *Vocabulary) (*Automaton, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	b := &builder{}
	starts := map[string]int32{}
	names := g.names(g.Start)
	a := &Automaton{vocab: v, grammar: g, rules: names}
	spans := make([]int, len(names)+1)
	for i, name := range names {
		spans[i] = len(b.nodes)
		starts[name] = b.node()
		e := g.Rules[name]
		end := b.build(&e, starts[name])
		b.nodes[end].end = true
		if b.err != nil {
			return nil, b.err
		}
	}
	spans[len(names)] = len(b.nodes)
	a.start = starts[g.Start]
	if err := a.close(b, starts); err != nil {
		return nil, err
	}
	for i := range names {
		for n := spans[i]; n < spans[i+1]; n++ {
			a.nodes[n].rule, a.nodes[n].at = int32(i), int32(n-spans[i])
		}
	}
	if err := a.leftFree(names, starts); err != nil {
		return nil, err
	}
	a.measure()
	if a.nodes[a.start].need > MaxDepth {
		return nil, ErrEndless
	}
	return a, nil
}

// close works the moves that take nothing into the nodes in front of them.
func (a *Automaton) close(b *builder, starts map[string]int32) error {
	a.nodes = make([]node, len(b.nodes))
	seen := make([]int32, len(b.nodes)) // by which node + 1
	var todo []int32
	total := 0
	for i := range b.nodes {
		n := &a.nodes[i]
		todo = append(todo[:0], int32(i))
		for len(todo) > 0 {
			at := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if seen[at] == int32(i)+1 {
				continue
			}
			seen[at] = int32(i) + 1
			raw := &b.nodes[at]
			n.moves = append(n.moves, raw.moves...)
			n.tokens = append(n.tokens, raw.tokens...)
			for _, c := range raw.calls {
				n.calls = append(n.calls, call{start: starts[c.rule], to: c.to})
			}
			n.end = n.end || raw.end
			todo = append(todo, raw.free...)
		}
		if total += len(n.moves) + len(n.calls) + len(n.tokens); total > MaxMoves {
			return fmt.Errorf("%w: more than %d moves", ErrTooLarge, MaxMoves)
		}
	}
	for i := range a.nodes {
		for j := range a.nodes[i].calls {
			c := &a.nodes[i].calls[j]
			to := &a.nodes[c.to]
			c.last = to.end && len(to.moves)+len(to.tokens)+len(to.calls) == 0
		}
	}
	return nil
}

// keyOf names a rule by its content and that of all that it calls, so that what
// its nodes accept is found out once for all grammars that have it.
func (a *Automaton) keyOf(rule int32) [sha256.Size]byte {
	if k, ok := a.keys.Load(rule); ok {
		return k.([sha256.Size]byte)
	}
	part := Grammar{Start: a.rules[rule], Rules: map[string]Expr{}}
	for _, name := range a.grammar.names(part.Start) {
		part.Rules[name] = a.grammar.Rules[name]
	}
	k := sha256.Sum256([]byte(part.key()))
	a.keys.Store(rule, k)
	return k
}

// leftFree refuses rules that come back to themselves before they took anything.
func (a *Automaton) leftFree(names []string, starts map[string]int32) error {
	empty := a.empties()
	state := map[int32]int{} // by start: 1 on the path, 2 done
	var visit func(start int32) bool
	visit = func(start int32) bool {
		switch state[start] {
		case 1:
			return false
		case 2:
			return true
		}
		state[start] = 1
		for _, callee := range a.firsts(start, empty, map[int32]bool{}, nil) {
			if !visit(callee) {
				return false
			}
		}
		state[start] = 2
		return true
	}
	for _, name := range names {
		if !visit(starts[name]) {
			return fmt.Errorf("%w: rule %q comes back to itself before it took anything", ErrInvalid, name)
		}
	}
	return nil
}

// firsts lists the rules that may be called from a node before anything is taken.
func (a *Automaton) firsts(at int32, empty []bool, seen map[int32]bool, out []int32) []int32 {
	if seen[at] {
		return out
	}
	seen[at] = true
	for _, c := range a.nodes[at].calls {
		out = append(out, c.start)
		if empty[c.start] {
			out = a.firsts(c.to, empty, seen, out)
		}
	}
	return out
}

// empties says from which nodes a rule may end without taking anything.
func (a *Automaton) empties() []bool {
	empty := make([]bool, len(a.nodes))
	for changed := true; changed; {
		changed = false
		for i := range a.nodes {
			if empty[i] {
				continue
			}
			n := &a.nodes[i]
			can := n.end
			for _, c := range n.calls {
				can = can || empty[c.start] && empty[c.to]
			}
			if can {
				empty[i], changed = true, true
			}
		}
	}
	return empty
}

// measure finds how many nested rules each node needs to end, and takes out the
// moves from which nothing ends.
func (a *Automaton) measure() {
	for i := range a.nodes {
		a.nodes[i].need = endless
	}
	for changed := true; changed; {
		changed = false
		for i := len(a.nodes) - 1; i >= 0; i-- { // what follows was mostly made later
			if need := a.needOf(&a.nodes[i]); need < a.nodes[i].need {
				a.nodes[i].need, changed = need, true
			}
		}
	}
	for i := range a.nodes {
		n := &a.nodes[i]
		n.moves = keep(n.moves, func(m move) bool { return a.nodes[m.to].need < endless })
		n.tokens = keep(n.tokens, func(m tokenMove) bool { return a.nodes[m.to].need < endless })
		n.calls = keep(n.calls, func(c call) bool { return a.nodes[c.to].need < endless && a.nodes[c.start].need < endless })
	}
}

func (a *Automaton) needOf(n *node) int32 {
	if n.end {
		return 0
	}
	need := int32(endless)
	for _, m := range n.moves {
		need = min(need, a.nodes[m.to].need)
	}
	for _, m := range n.tokens {
		need = min(need, a.nodes[m.to].need)
	}
	for _, c := range n.calls {
		if inner, after := a.nodes[c.start].need, a.nodes[c.to].need; inner < endless && after < endless {
			need = min(need, max(inner+c.frames(), after))
		}
	}
	return need
}

// frames is how many a call takes.
func (c call) frames() int32 {
	if c.last {
		return 0
	}
	return 1
}

// keep filters in place.
func keep[T any](list []T, good func(T) bool) []T {
	out := list[:0]
	for _, x := range list {
		if good(x) {
			out = append(out, x)
		}
	}
	return out
}
