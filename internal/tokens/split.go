package tokens

import (
	"fmt"

	"github.com/dlclark/regexp2"
)

// splitter cuts text into words.
type splitter interface {
	// words yields the words of a text in order; together they are the text.
	words(text string, yield func(word string))
}

func newSplitter(p preTokenizer) (splitter, error) {
	if p.scan != nil {
		return scanning{p.scan, p.digits}, nil
	}
	return newMatching(p.patterns)
}

// scanning cuts with a scanner.
type scanning struct {
	scan   scanner
	digits bool
}

func (s scanning) words(text string, yield func(string)) {
	for s.digits && text != "" {
		end := 0 // of what stands before the next digit
		for end < len(text) {
			k, n := classAt(text, end)
			if k&number != 0 {
				break
			}
			end += n
		}
		s.stretch(text[:end], yield)
		if text = text[end:]; text == "" {
			return
		}
		_, n := classAt(text, 0)
		yield(text[:n])
		text = text[n:]
	}
	s.stretch(text, yield)
}

func (s scanning) stretch(text string, yield func(string)) {
	for i := 0; i < len(text); {
		end := s.scan(text, i)
		yield(text[i:end])
		i = end
	}
}

// matching cuts with patterns. They look ahead, which the standard library's
// regexp cannot; none of them backtracks more than one run of equal characters,
// so time is linear in the text.
type matching struct{ stages []*regexp2.Regexp }

func newMatching(patterns []string) (splitter, error) {
	var s matching
	for _, p := range patterns {
		re, err := regexp2.Compile(p, regexp2.None)
		if err != nil {
			return s, fmt.Errorf("pattern %q: %w", p, err)
		}
		s.stages = append(s.stages, re)
	}
	return s, nil
}

func (s matching) words(text string, yield func(word string)) {
	s.stage(0, []rune(text), yield)
}

// stage cuts with pattern i and passes both its matches and the gaps between
// them to the next one.
func (s matching) stage(i int, text []rune, yield func(string)) {
	if len(text) == 0 {
		return
	}
	if i == len(s.stages) {
		yield(string(text))
		return
	}
	from := 0
	m, err := s.stages[i].FindRunesMatch(text)
	for ; m != nil && err == nil; m, err = s.stages[i].FindNextMatch(m) {
		if m.Length == 0 {
			continue
		}
		s.stage(i+1, text[from:m.Index], yield)
		s.stage(i+1, text[m.Index:m.Index+m.Length], yield)
		from = m.Index + m.Length
	}
	s.stage(i+1, text[from:], yield)
}
