package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Bounds of a grammar. Each keeps one request from taking more than its share of
// a node's time and memory.
const (
	MaxDepth = 512     // nested rules at any time; a level of JSON takes two or three
	MaxNodes = 1 << 15 // of the automaton, with repetitions unrolled
	MaxMoves = 1 << 17 // of the automaton
	MaxRules = 1 << 12
	maxNest  = 200 // of expressions within each other

	maxThreads = 256 // ways to read a text; further ones are not looked at
)

// Errors of grammars that cannot be used.
var (
	ErrTooLarge = errors.New("the grammar is too large")
	ErrEndless  = errors.New("no text of the grammar ever ends")
	ErrInvalid  = errors.New("the grammar is not well formed")
)

// Grammar is the texts that may be generated: those of the rule Start.
type Grammar struct {
	Start string          `json:"start"`
	Rules map[string]Expr `json:"rules"`
}

// Expr is a set of texts. At most one field is set; the zero value is the empty
// text.
type Expr struct {
	Text  string  `json:"t,omitempty"` // these very bytes
	Class []rune  `json:"c,omitempty"` // one character of these ranges: first, last, first, last...
	Seq   []Expr  `json:"s,omitempty"` // one after the other
	Alt   []Expr  `json:"a,omitempty"` // one of them
	Rep   *Repeat `json:"r,omitempty"`
	Call  string  `json:"x,omitempty"` // a rule
	Token *int32  `json:"k,omitempty"` // a control token, which stands for no text
	Until string  `json:"u,omitempty"` // any bytes up to this text and with it, at its first occurrence
	Apart string  `json:"w,omitempty"` // any bytes without this text among them
	None  bool    `json:"n,omitempty"` // no text at all
}

// Repeat is an expression several times.
type Repeat struct {
	Of  Expr `json:"of"`
	Min int  `json:"min,omitempty"`
	Max int  `json:"max,omitempty"` // 0: any number
}

// Text is a literal.
func Text(s string) Expr { return Expr{Text: s} }

// Class is one character of ranges: first, last, first, last...
func Class(ranges ...rune) Expr { return Expr{Class: ranges} }

// Seq is expressions one after the other.
func Seq(e ...Expr) Expr { return Expr{Seq: e} }

// Alt is one of several expressions; of none, it is no text at all.
func Alt(e ...Expr) Expr {
	switch len(e) {
	case 0:
		return Expr{None: true}
	case 1:
		return e[0]
	}
	return Expr{Alt: e}
}

// Call is a rule's texts.
func Call(rule string) Expr { return Expr{Call: rule} }

// Token is one control token.
func Token(id int32) Expr { return Expr{Token: &id} }

// Until is any bytes up to the first occurrence of a text, which is included.
func Until(s string) Expr { return Expr{Until: s} }

// Apart is any bytes that do not hold a text.
func Apart(s string) Expr { return Expr{Apart: s} }

// Times is an expression least to most times; most 0 is without a bound.
func Times(e Expr, least, most int) Expr { return Expr{Rep: &Repeat{e, least, most}} }

// Maybe is an expression or nothing.
func Maybe(e Expr) Expr { return Times(e, 0, 1) }

// Any is an expression any number of times.
func Any(e Expr) Expr { return Times(e, 0, 0) }

// Validate checks what can be checked without compiling.
func (g *Grammar) Validate() error {
	if len(g.Rules) > MaxRules {
		return fmt.Errorf("%w: %d rules, at most %d", ErrTooLarge, len(g.Rules), MaxRules)
	}
	if _, ok := g.Rules[g.Start]; !ok {
		return fmt.Errorf("%w: there is no rule %q to start with", ErrInvalid, g.Start)
	}
	for name, e := range g.Rules {
		if err := g.check(&e, 0); err != nil {
			return fmt.Errorf("rule %q: %w", name, err)
		}
	}
	return nil
}

func (g *Grammar) check(e *Expr, depth int) error {
	if depth > maxNest {
		return fmt.Errorf("%w: expressions nested more than %d deep", ErrTooLarge, maxNest)
	}
	if e.fields() > 1 {
		return fmt.Errorf("%w: an expression of two kinds", ErrInvalid)
	}
	if e.Call != "" {
		if _, ok := g.Rules[e.Call]; !ok {
			return fmt.Errorf("%w: there is no rule %q", ErrInvalid, e.Call)
		}
	}
	if len(e.Class)%2 != 0 {
		return fmt.Errorf("%w: a range without an end", ErrInvalid)
	}
	for i := 0; i < len(e.Class); i += 2 {
		if lo, hi := e.Class[i], e.Class[i+1]; lo < 0 || hi < lo || hi > utf8.MaxRune {
			return fmt.Errorf("%w: no range of characters: %#x to %#x", ErrInvalid, lo, hi)
		}
	}
	if r := e.Rep; r != nil {
		if r.Min < 0 || r.Max < 0 || r.Max > 0 && r.Max < r.Min {
			return fmt.Errorf("%w: %d to %d times", ErrInvalid, r.Min, r.Max)
		}
		if r.Min > MaxNodes || r.Max > MaxNodes {
			return fmt.Errorf("%w: %d to %d times", ErrTooLarge, r.Min, r.Max)
		}
		return g.check(&r.Of, depth+1)
	}
	for _, part := range [][]Expr{e.Seq, e.Alt} {
		for i := range part {
			if err := g.check(&part[i], depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// fields counts the kinds that an expression claims to be.
func (e *Expr) fields() (n int) {
	for _, set := range []bool{e.Text != "", e.Class != nil, e.Seq != nil, e.Alt != nil, e.Rep != nil, e.Call != "", e.Token != nil, e.Until != "", e.Apart != "", e.None} {
		if set {
			n++
		}
	}
	return n
}

// Calls lists the rules that an expression names.
func (e Expr) Calls() []string { return e.calls(nil) }

// calls appends the rules that an expression names.
func (e *Expr) calls(out []string) []string {
	if e.Call != "" {
		out = append(out, e.Call)
	}
	for i := range e.Seq {
		out = e.Seq[i].calls(out)
	}
	for i := range e.Alt {
		out = e.Alt[i].calls(out)
	}
	if e.Rep != nil {
		out = e.Rep.Of.calls(out)
	}
	return out
}

// names lists the rules that can be reached from a rule, in order.
func (g *Grammar) names(from string) []string {
	seen := map[string]bool{from: true}
	for todo := []string{from}; len(todo) > 0; {
		e := g.Rules[todo[0]]
		todo = todo[1:]
		for _, name := range e.calls(nil) {
			if !seen[name] {
				seen[name] = true
				todo = append(todo, name)
			}
		}
	}
	out := make([]string, 0, len(seen))
	for name := range seen {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// key names a grammar by its content.
func (g *Grammar) key() string {
	b, err := json.Marshal(g)
	if err != nil {
		panic("BUG: a grammar that cannot be written: " + err.Error())
	}
	return string(b)
}
