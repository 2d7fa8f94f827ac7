package grammar

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// builder makes the nodes of rules, at first with moves that take nothing.
type builder struct {
	nodes []rawNode
	err   error
}

type rawNode struct {
	moves  []move
	tokens []tokenMove
	calls  []rawCall
	free   []int32 // moves that take nothing
	end    bool    // a rule may end here
}

type rawCall struct {
	rule string
	to   int32
}

func (b *builder) node() int32 {
	if len(b.nodes) >= MaxNodes && b.err == nil {
		b.err = fmt.Errorf("%w: more than %d nodes", ErrTooLarge, MaxNodes)
	}
	b.nodes = append(b.nodes, rawNode{})
	return int32(len(b.nodes) - 1)
}

func (b *builder) move(from int32, lo, hi byte, to int32) {
	b.nodes[from].moves = append(b.nodes[from].moves, move{lo, hi, to})
}

func (b *builder) skip(from, to int32) {
	if from != to {
		b.nodes[from].free = append(b.nodes[from].free, to)
	}
}

// build adds the texts of e between a node and the one it returns.
func (b *builder) build(e *Expr, from int32) int32 {
	if b.err != nil {
		return from
	}
	switch {
	case e.Text != "":
		for i := range len(e.Text) {
			to := b.node()
			b.move(from, e.Text[i], e.Text[i], to)
			from = to
		}
		return from
	case e.Class != nil:
		return b.class(e.Class, from)
	case e.Seq != nil:
		for i := range e.Seq {
			from = b.build(&e.Seq[i], from)
		}
		return from
	case e.Alt != nil:
		return b.alternatives(e.Alt, from)
	case e.Rep != nil:
		return b.repeat(e.Rep, from)
	case e.Call != "":
		to := b.node()
		b.nodes[from].calls = append(b.nodes[from].calls, rawCall{e.Call, to})
		return to
	case e.Token != nil:
		to := b.node()
		b.nodes[from].tokens = append(b.nodes[from].tokens, tokenMove{*e.Token, to})
		return to
	case e.Until != "":
		at := b.until(e.Until, from)
		return at[len(at)-1]
	case e.Apart != "":
		end := b.node()
		at := b.until(e.Apart, from)
		for _, n := range at[:len(at)-1] {
			b.skip(n, end)
		}
		return end
	case e.None:
		return b.node()
	}
	return from
}

// alternatives share the beginnings of literals, so that a long enumeration is
// one thread and not a thousand.
func (b *builder) alternatives(alt []Expr, from int32) int32 {
	to := b.node()
	root := b.node()
	b.skip(from, root)
	for i := range alt {
		if alt[i].Text == "" {
			start := b.node()
			b.skip(from, start)
			b.skip(b.build(&alt[i], start), to)
			continue
		}
		at := root
		for _, c := range []byte(alt[i].Text) {
			at = b.child(at, c)
		}
		b.skip(at, to)
	}
	return to
}

// child is the node behind a byte, made if need be.
func (b *builder) child(at int32, c byte) int32 {
	for _, m := range b.nodes[at].moves {
		if m.lo == c {
			return m.to
		}
	}
	to := b.node()
	b.move(at, c, c, to)
	return to
}

func (b *builder) repeat(r *Repeat, from int32) int32 {
	for range r.Min {
		if from = b.build(&r.Of, from); b.err != nil {
			return from
		}
	}
	end := b.node()
	if r.Max == 0 {
		loop := b.node()
		b.skip(from, loop)
		b.skip(b.build(&r.Of, loop), loop)
		b.skip(loop, end)
		return end
	}
	for range r.Max - r.Min {
		b.skip(from, end)
		next := b.node()
		b.skip(from, next)
		if from = b.build(&r.Of, next); b.err != nil {
			return from
		}
	}
	b.skip(from, end)
	return end
}

// until builds the automaton of Knuth, Morris and Pratt: the i-th node has seen i
// bytes of s.
func (b *builder) until(s string, from int32) []int32 {
	at := make([]int32, len(s)+1)
	for i := range at {
		at[i] = b.node()
	}
	b.skip(from, at[0])
	fail := 0 // where the automaton would be after s[1:i]
	for i := range len(s) {
		var next [256]int32
		for c := range next {
			next[c] = at[0]
			if i > 0 {
				next[c] = b.target(at[fail], byte(c))
			}
		}
		restart := next[s[i]]
		next[s[i]] = at[i+1]
		b.ranges(at[i], &next)
		if i > 0 {
			fail = slices.Index(at, restart)
		}
	}
	return at
}

// target is where a byte leads from a node that has a move for each.
func (b *builder) target(at int32, c byte) int32 {
	for _, m := range b.nodes[at].moves {
		if m.lo <= c && c <= m.hi {
			return m.to
		}
	}
	panic("BUG: a byte without a move")
}

// ranges adds a move for every byte, equal neighbours together.
func (b *builder) ranges(from int32, next *[256]int32) {
	for lo := 0; lo < 256; {
		hi := lo
		for hi < 255 && next[hi+1] == next[lo] {
			hi++
		}
		b.move(from, byte(lo), byte(hi), next[lo])
		lo = hi + 1
	}
}

// class adds one character as the bytes of its UTF-8.
func (b *builder) class(ranges []rune, from int32) int32 {
	to := b.node()
	tails := map[string]int32{"": to}
	for i := 0; i < len(ranges); i += 2 {
		for _, seq := range utf8Ranges(ranges[i], ranges[i+1]) {
			at := from
			for j, r := range seq {
				next := b.tail(tails, seq[j+1:])
				b.move(at, r.lo, r.hi, next)
				at = next
			}
		}
	}
	return to
}

// tail is the node in front of the rest of a character; equal rests share it.
func (b *builder) tail(tails map[string]int32, rest []byteRange) int32 {
	key := ""
	for _, r := range rest {
		key += string([]byte{r.lo, r.hi})
	}
	n, ok := tails[key]
	if !ok {
		n = b.node()
		tails[key] = n
		b.move(n, rest[0].lo, rest[0].hi, b.tail(tails, rest[1:]))
	}
	return n
}

type byteRange struct{ lo, hi byte }

// utf8Ranges splits a range of characters into sequences of byte ranges, each of
// which is exactly the encodings of a part of it. Surrogates have no encoding.
func utf8Ranges(lo, hi rune) (out [][]byteRange) {
	const firstSurrogate, lastSurrogate = 0xd800, 0xdfff
	if lo > hi {
		return nil
	}
	if lo <= lastSurrogate && hi >= firstSurrogate {
		return append(utf8Ranges(lo, firstSurrogate-1), utf8Ranges(lastSurrogate+1, hi)...)
	}
	for _, last := range []rune{0x7f, 0x7ff, 0xffff} { // the last one of each length
		if lo <= last && last < hi {
			return append(utf8Ranges(lo, last), utf8Ranges(last+1, hi)...)
		}
	}
	for bits := 6; bits < 6*utf8.RuneLen(hi); bits += 6 { // whole blocks of continuation bytes
		mask := rune(1)<<bits - 1
		if lo&^mask == hi&^mask {
			break
		}
		if lo&mask != 0 {
			return append(utf8Ranges(lo, lo|mask), utf8Ranges(lo|mask+1, hi)...)
		}
		if hi&mask != mask {
			return append(utf8Ranges(lo, hi&^mask-1), utf8Ranges(hi&^mask, hi)...)
		}
	}
	var a, z [utf8.UTFMax]byte
	n := utf8.EncodeRune(a[:], lo)
	utf8.EncodeRune(z[:], hi)
	seq := make([]byteRange, n)
	for i := range seq {
		seq[i] = byteRange{a[i], z[i]}
	}
	return [][]byteRange{seq}
}
