package jinja

import (
	"sort"
	"strings"
)

// Mark says where text comes from. 0 is the template or its owner; what the
// others mean is up to the caller, greater ones being less trusted.
type Mark uint8

// Span is a range of bytes with a mark that is not 0; End is exclusive.
type Span struct {
	Start, End int
	Mark       Mark
}

// Text is a string that knows where its bytes come from. The spans are
// ascending, not empty and do not overlap; neighbours that touch have different
// marks. Bytes outside of all spans have mark 0. The zero value is the empty
// string. A Text never changes.
type Text struct {
	S     string
	Spans []Span
}

// Trusted returns text that the template itself, or its owner, wrote.
func Trusted(s string) Text { return Text{S: s} }

// Marked returns text of one mark.
func Marked(s string, m Mark) Text {
	if s == "" || m == 0 {
		return Text{S: s}
	}
	return Text{S: s, Spans: []Span{{0, len(s), m}}}
}

// slice returns bytes i to j with their marks.
func (t Text) slice(i, j int) Text {
	out := Text{S: t.S[i:j]}
	first := sort.Search(len(t.Spans), func(k int) bool { return t.Spans[k].End > i })
	for _, s := range t.Spans[first:] {
		a, b := max(s.Start, i), min(s.End, j)
		if a >= b {
			break
		}
		out.Spans = append(out.Spans, Span{a - i, b - i, s.Mark})
	}
	return out
}

// like returns s with the greatest mark of t: for changes that do not keep
// positions, such as upper case.
func (t Text) like(s string) Text {
	var m Mark
	for _, s := range t.Spans {
		m = max(m, s.Mark)
	}
	return Marked(s, m)
}

// textBuilder concatenates Texts.
type textBuilder struct {
	sb    strings.Builder
	spans []Span
}

func (b *textBuilder) add(t Text) {
	at := b.sb.Len()
	b.sb.WriteString(t.S)
	for _, s := range t.Spans {
		s.Start += at
		s.End += at
		if n := len(b.spans); n > 0 && b.spans[n-1].End == s.Start && b.spans[n-1].Mark == s.Mark {
			b.spans[n-1].End = s.End
			continue
		}
		b.spans = append(b.spans, s)
	}
}

func (b *textBuilder) len() int { return b.sb.Len() }

func (b *textBuilder) text() Text { return Text{S: b.sb.String(), Spans: b.spans} }

func concat(parts ...Text) Text {
	var b textBuilder
	for _, p := range parts {
		b.add(p)
	}
	return b.text()
}

// split cuts t at every sep, as Python's str.split(sep, max) does; max < 0 is
// no limit.
func (t Text) split(sep string, max int) []Text {
	var out []Text
	from := 0
	for max != 0 {
		i := strings.Index(t.S[from:], sep)
		if i < 0 {
			break
		}
		out = append(out, t.slice(from, from+i))
		from += i + len(sep)
		max--
	}
	return append(out, t.slice(from, len(t.S)))
}

// rsplit is split from the right.
func (t Text) rsplit(sep string, max int) []Text {
	if max < 0 {
		return t.split(sep, -1)
	}
	var tail []Text
	end := len(t.S)
	for ; max > 0; max-- {
		i := strings.LastIndex(t.S[:end], sep)
		if i < 0 {
			break
		}
		tail = append(tail, t.slice(i+len(sep), end))
		end = i
	}
	out := []Text{t.slice(0, end)}
	for i := len(tail) - 1; i >= 0; i-- {
		out = append(out, tail[i])
	}
	return out
}

// replace replaces the first n occurrences of old, all if n < 0.
func (t Text) replace(old string, by Text, n int) Text {
	if old == "" {
		return t // Python would interleave; no template means that
	}
	var b textBuilder
	for i, part := range t.split(old, n) {
		if i > 0 {
			b.add(by)
		}
		b.add(part)
	}
	return b.text()
}

// trim strips characters for which drop is true from the asked ends.
func (t Text) trim(left, right bool, drop func(rune) bool) Text {
	i, j := 0, len(t.S)
	if left {
		i = len(t.S) - len(strings.TrimLeftFunc(t.S, drop))
	}
	if right {
		j = max(i, len(strings.TrimRightFunc(t.S, drop)))
	}
	return t.slice(i, j)
}
