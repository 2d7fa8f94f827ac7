package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// bytewise has an end (0), each byte (1+b), and two control tokens.
func bytewise(t testing.TB, more ...string) *Vocabulary {
	t.Helper()
	tokens := make([][]byte, 259)
	for b := range 256 {
		tokens[1+b] = []byte{byte(b)}
	}
	for _, s := range more {
		tokens = append(tokens, []byte(s))
	}
	v, err := NewVocabulary(tokens, []int32{0})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const firstControl, secondControl = 257, 258

func automaton(t testing.TB, v *Vocabulary, start Expr, more ...map[string]Expr) *Automaton {
	t.Helper()
	g := &Grammar{Start: "start", Rules: map[string]Expr{"start": start}}
	for _, m := range more {
		for name, e := range m {
			g.Rules[name] = e
		}
	}
	wire, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	back := &Grammar{}
	if err := json.Unmarshal(wire, back); err != nil {
		t.Fatal(err)
	}
	a, err := v.Automaton(back)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func spells(a *Automaton, text string) bool {
	m := a.Start()
	for _, b := range []byte(text) {
		if m.Take(1+int32(b)) != nil {
			return false
		}
	}
	return m.Done()
}

func TestExpressions(t *testing.T) {
	v := bytewise(t)
	for _, c := range []struct {
		e         Expr
		good, bad string // words
	}{
		{Text("ab"), "ab", "a abc b"},
		{Alt(Text("a"), Text("ab"), Text("abc"), Text("b")), "a ab abc b", "c abcd bc"},
		{Seq(Maybe(Text("a")), Times(Text("b"), 2, 3)), "bb abb abbb", "a ab abbbb"},
		{Times(Alt(Text("x"), Text("y")), 0, 2), "x y xy", "xyx z"},
		{Times(Text("x"), 1, 0), "x xx xxxxx", "y xy"},
		{Class('a', 'c', 'é', 'é', '日', '日'), "a b c é 日", "d è 本 \xc3"},
		{Until("</a>"), "</a> x</a> <</a> </</a>", "x </a>x </a></a>"},
		{Apart("aab"), "x a aa aaa aba", "aab xaab aaab"},
		{Seq(Apart("ab"), Text("ab")), "ab aab xab", "abab ba"},
		{Alt(), "", "a"},
		{Alt(Alt(), Text("a")), "a", "b"},
	} {
		a, err := v.Automaton(&Grammar{Start: "s", Rules: map[string]Expr{"s": c.e}})
		if err != nil && c.good == "" {
			if !errors.Is(err, ErrEndless) {
				t.Errorf("%+v: %v", c.e, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c.e, err)
			continue
		}
		for _, w := range strings.Fields(c.good) {
			if !spells(a, w) {
				t.Errorf("%+v refuses %q", c.e, w)
			}
		}
		for _, w := range strings.Fields(c.bad) {
			if spells(a, w) {
				t.Errorf("%+v admits %q", c.e, w)
			}
		}
	}
}

func TestUTF8RangesAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		lo := rune(r.IntN(0x110000))
		hi := min(lo+rune(r.IntN(1+r.IntN(0x30000))), utf8.MaxRune)
		seqs := utf8Ranges(lo, hi)
		has := func(c rune) bool {
			b := []byte(string(c))
			for _, s := range seqs {
				fits := len(s) == len(b)
				for i := range b {
					fits = fits && s[i].lo <= b[i] && b[i] <= s[i].hi
				}
				if fits {
					return true
				}
			}
			return false
		}
		for _, c := range []rune{lo - 1, lo, lo + 1, hi - 1, hi, hi + 1, (lo + hi) / 2, rune(r.IntN(0x110000))} {
			if c < 0 || c > utf8.MaxRune || c >= 0xd800 && c < 0xe000 {
				continue
			}
			if has(c) != (c >= lo && c <= hi) {
				t.Fatalf("%x to %x: %x is in it: %v", lo, hi, c, has(c))
			}
		}
	}
}

// A rule that calls itself counts brackets.
func TestRecursionIsCountedToItsBound(t *testing.T) {
	v := bytewise(t)
	a := automaton(t, v, Call("nest"), map[string]Expr{"nest": Seq(Text("("), Maybe(Call("nest")), Text(")"))})
	for _, n := range []int{1, 5, 100} {
		if !spells(a, strings.Repeat("(", n)+strings.Repeat(")", n)) || spells(a, strings.Repeat("(", n)+strings.Repeat(")", n+1)) {
			t.Errorf("%d brackets", n)
		}
	}
	m := a.Start()
	open := 0
	for ; m.Allowed(nil).Has(1 + '('); open++ {
		if err := m.Take(1 + '('); err != nil {
			t.Fatal(err)
		}
	}
	if open != MaxDepth+1 { // the outermost needs no frame
		t.Errorf("%d brackets, the bound is %d", open, MaxDepth)
	}
}

// A list that goes on by its last call needs no frames, however long it is.
func TestLastCallsNeedNoFrames(t *testing.T) {
	v := bytewise(t)
	a := automaton(t, v, Call("list"), map[string]Expr{"list": Seq(Text("x"), Maybe(Call("list")))})
	if !spells(a, strings.Repeat("x", 20*MaxDepth)) {
		t.Error("a long list is refused")
	}
}

func TestControlTokens(t *testing.T) {
	v := bytewise(t)
	a := automaton(t, v, Seq(Maybe(Token(firstControl)), Text("a"), Alt(Token(secondControl), Text("b"))))
	m := a.Start()
	if mask := m.Allowed(nil); !mask.Has(firstControl) || mask.Has(secondControl) || mask.Has(0) || !mask.Has(1+'a') || mask.Count() != 2 {
		t.Errorf("at the start: %d tokens", mask.Count())
	}
	for _, id := range []int32{firstControl, 1 + 'a', secondControl} {
		if err := m.Take(id); err != nil {
			t.Fatal(err)
		}
	}
	if mask := m.Allowed(nil); !m.Done() || !m.Stuck() || mask.Count() != 1 || !mask.Has(0) {
		t.Errorf("at the end: done %v, stuck %v, %d tokens", m.Done(), m.Stuck(), mask.Count())
	}
	for _, id := range []int32{0, firstControl, 1 + 'a', 300, -1} {
		if a.Start().Take(id) == nil != (id == firstControl || id == 1+'a') {
			t.Errorf("token %d at the start", id)
		}
	}
}

func TestBrokenGrammars(t *testing.T) {
	v := bytewise(t)
	nested := Text("x")
	for range maxNest + 1 {
		nested = Expr{Seq: []Expr{nested}}
	}
	for name, c := range map[string]struct {
		g    Grammar
		want error
	}{
		"no start":         {Grammar{Start: "a"}, ErrInvalid},
		"no such rule":     {Grammar{Start: "a", Rules: map[string]Expr{"a": Call("b")}}, ErrInvalid},
		"two kinds":        {Grammar{Start: "a", Rules: map[string]Expr{"a": {Text: "x", Call: "a"}}}, ErrInvalid},
		"half a range":     {Grammar{Start: "a", Rules: map[string]Expr{"a": Class('a')}}, ErrInvalid},
		"a range upwards":  {Grammar{Start: "a", Rules: map[string]Expr{"a": Class('b', 'a')}}, ErrInvalid},
		"times backwards":  {Grammar{Start: "a", Rules: map[string]Expr{"a": Times(Text("x"), 3, 2)}}, ErrInvalid},
		"too often":        {Grammar{Start: "a", Rules: map[string]Expr{"a": Times(Text("x"), 1<<20, 0)}}, ErrTooLarge},
		"often, in turn":   {Grammar{Start: "a", Rules: map[string]Expr{"a": Times(Times(Text("x"), 1000, 1000), 1000, 1000)}}, ErrTooLarge},
		"deep":             {Grammar{Start: "a", Rules: map[string]Expr{"a": nested}}, ErrTooLarge},
		"many choices":     {Grammar{Start: "a", Rules: map[string]Expr{"a": Times(Maybe(Text("x")), 3000, 3000)}}, ErrTooLarge},
		"itself at once":   {Grammar{Start: "a", Rules: map[string]Expr{"a": Alt(Seq(Call("a"), Text("x")), Text("y"))}}, ErrInvalid},
		"itself, by turns": {Grammar{Start: "a", Rules: map[string]Expr{"a": Seq(Call("e"), Call("b")), "b": Alt(Call("a"), Text("y")), "e": Maybe(Text("z"))}}, ErrInvalid},
		"without end":      {Grammar{Start: "a", Rules: map[string]Expr{"a": Seq(Text("x"), Call("a"))}}, ErrEndless},
	} {
		if _, err := v.Automaton(&c.g); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for name, ends := range map[string][]int32{"no end": nil, "an end that is no token": {7}} {
		if _, err := NewVocabulary([][]byte{nil, []byte("x")}, ends); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// An ambiguous grammar, in which readings double with each byte, stays cheap.
func TestAmbiguityIsBounded(t *testing.T) {
	v := bytewise(t)
	a := automaton(t, v, Call("a"), map[string]Expr{
		"a": Alt(Seq(Text("["), Call("a"), Text("]")), Seq(Text("["), Call("a"), Text("]")), Text("x"))})
	m := a.Start()
	for range 60 {
		if err := m.Take(1 + '['); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.now.threads) > maxThreads {
		t.Errorf("%d readings", len(m.now.threads))
	}
	if !m.Allowed(nil).Has(1 + 'x') {
		t.Error("the text may not go on")
	}
}

// Frames that nobody needs any more are forgotten, and the state stays.
func TestFramesAreForgotten(t *testing.T) {
	v := bytewise(t)
	a := automaton(t, v, Call("a"), map[string]Expr{"a": Seq(Text("("), Any(Call("a")), Text(")"))})
	m, r := a.Start(), rand.New(rand.NewPCG(2, 2))
	depth := 0
	for i := range 40_000 {
		down := depth < 3 || depth < 30 && r.IntN(2) == 0
		b := byte(')')
		if down {
			b = '('
		}
		if err := m.Take(1 + int32(b)); err != nil {
			t.Fatalf("byte %d at depth %d: %v", i, depth, err)
		}
		if down {
			depth++
		} else {
			depth--
		}
		if i%1000 == 0 {
			m.compact()
		}
	}
	if len(m.frames) > maxFrames {
		t.Errorf("%d frames", len(m.frames))
	}
}

func TestEveryAutomatonIsSharedAndForgotten(t *testing.T) {
	v := bytewise(t)
	g := func(i int) *Grammar {
		return &Grammar{Start: "s", Rules: map[string]Expr{"s": Seq(Text(fmt.Sprint(i)), Times(Text("abcdefgh"), 1000, 1000))}}
	}
	first, err := v.Automaton(g(0))
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := v.Automaton(g(0)); again != first {
		t.Error("the same grammar was compiled twice")
	}
	for i := range 40 {
		if _, err := v.Automaton(g(1 + i)); err != nil {
			t.Fatal(err)
		}
	}
	if v.mu.nodes > keptNodes {
		t.Errorf("%d nodes are kept, at most %d may be", v.mu.nodes, keptNodes)
	}
	if again, _ := v.Automaton(g(0)); again == first {
		t.Error("nothing was forgotten")
	}
}

func FuzzGrammar(f *testing.F) {
	f.Add([]byte(`{"start":"s","rules":{"s":{"s":[{"t":"a"},{"r":{"of":{"c":[97,99]},"min":1}}]}}}`))
	f.Add([]byte(`{"start":"s","rules":{"s":{"a":[{"u":"xx"},{"w":"y"},{"k":257},{"x":"s"}]}}}`))
	v := bytewise(f, "ab", "xx", "aaa")
	f.Fuzz(func(t *testing.T, b []byte) {
		g := &Grammar{}
		if json.Unmarshal(b, g) != nil {
			return
		}
		a, err := v.Automaton(g)
		if err != nil {
			return
		}
		m, r := a.Start(), rand.New(rand.NewPCG(1, uint64(len(b))))
		for range 50 {
			mask := m.Allowed(nil)
			var may []int32
			for id := range int32(v.Size()) {
				if mask.Has(id) {
					may = append(may, id)
				}
			}
			if len(may) == 0 {
				t.Fatalf("stuck in %s", b)
			}
			id := may[r.IntN(len(may))]
			if id == 0 {
				return
			}
			if err := m.Take(id); err != nil {
				t.Fatalf("%s allowed token %d: %v", b, id, err)
			}
		}
	})
}
