package tokens

import (
	"fmt"

	"github.com/dlclark/regexp2"
)

// splitter cuts text into words. The patterns look ahead, which the standard
// library's regexp cannot; none of them backtracks more than one run of equal
// characters, so time is linear in the text.
type splitter struct{ stages []*regexp2.Regexp }

func newSplitter(patterns []string) (splitter, error) {
	var s splitter
	for _, p := range patterns {
		re, err := regexp2.Compile(p, regexp2.None)
		if err != nil {
			return s, fmt.Errorf("pattern %q: %w", p, err)
		}
		s.stages = append(s.stages, re)
	}
	return s, nil
}

// words yields the words of valid UTF-8 text in order; together they are the text.
func (s splitter) words(text string, yield func(word string)) {
	s.stage(0, []rune(text), yield)
}

// stage cuts with pattern i and passes both its matches and the gaps between
// them to the next one.
func (s splitter) stage(i int, text []rune, yield func(string)) {
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
