package tokens

import (
	"unicode"
	"unicode/utf8"
)

// A scanner returns the end of the word that begins at i, which must be before
// the end of the text. It does what a family's pattern does, without a regular
// expression's cost; tests hold the two against each other.
type scanner func(text string, i int) int

// class is what patterns ask of a character.
type class uint8

const (
	letter  class = 1 << iota // \p{L}
	number                    // \p{N}
	space                     // \s
	newline                   // \r or \n
	upper                     // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
	lower                     // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
)

var asciiClass = func() (t [utf8.RuneSelf]class) {
	for r := range rune(utf8.RuneSelf) {
		t[r] = classOf(r)
	}
	return t
}()

func classOf(r rune) (c class) {
	switch {
	case unicode.IsLetter(r):
		c = letter
		switch {
		case unicode.Is(unicode.Ll, r):
			c |= lower
		case unicode.Is(unicode.Lu, r), unicode.Is(unicode.Lt, r):
			c |= upper
		default:
			c |= upper | lower
		}
	case unicode.IsNumber(r):
		c = number
	case unicode.IsMark(r):
		c = upper | lower
	case unicode.IsSpace(r):
		c = space
		if r == '\n' || r == '\r' {
			c |= newline
		}
	}
	return c
}

// classAt returns the class and width of the character at i; at the end of the
// text, nothing and 0.
func classAt(text string, i int) (class, int) {
	if i >= len(text) {
		return 0, 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		return asciiClass[b], 1
	}
	r, n := utf8.DecodeRuneInString(text[i:])
	return classOf(r), n
}

// run returns the end of the longest run from i of characters of class c, at
// most limit of them.
func run(text string, i int, c class, limit int) int {
	for ; limit > 0; limit-- {
		k, n := classAt(text, i)
		if k&c == 0 {
			break
		}
		i += n
	}
	return i
}

const noLimit = int(^uint(0) >> 1)

// symbols returns the end of the run of [^\s\p{L}\p{N}] from i.
func symbols(text string, i int) int {
	for i < len(text) {
		k, n := classAt(text, i)
		if k&(space|letter|number) != 0 {
			break
		}
		i += n
	}
	return i
}

// contraction returns the end of 's, 't, 're, 've, 'm, 'll or 'd at i, else i.
func contraction(text string, i int, anyCase bool) int {
	if i+1 >= len(text) || text[i] != '\'' {
		return i
	}
	fold := func(j int) byte {
		if j >= len(text) {
			return 0
		}
		b := text[j]
		if anyCase && 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		return b
	}
	switch a, b := fold(i+1), fold(i+2); {
	case a == 's', a == 't', a == 'm', a == 'd':
		return i + 2
	case a == 'r' && b == 'e', a == 'v' && b == 'e', a == 'l' && b == 'l':
		return i + 3
	}
	return i
}

// blank is \s*[\r\n]+|\s+(?!\S)|\s+ at i, which must be a space: up to the last
// line end of a run; else the run, but for its last character if a word follows.
func blank(text string, i int, lines bool) int {
	end, last, afterLine := i, i, -1
	for {
		k, n := classAt(text, end)
		if k&space == 0 {
			break
		}
		last = end
		end += n
		if k&newline != 0 {
			afterLine = end
		}
	}
	switch {
	case lines && afterLine >= 0:
		return afterLine
	case end == len(text) || last == i:
		return end
	}
	return last
}

// scanGPT2 is the pattern gpt2Words.
func scanGPT2(text string, i int) int {
	if end := contraction(text, i, false); end > i {
		return end
	}
	from := i
	if text[i] == ' ' {
		from++
	}
	switch k, n := classAt(text, from); {
	case n == 0, k&space != 0:
		return blank(text, i, false)
	case k&letter != 0:
		return run(text, from, letter, noLimit)
	case k&number != 0:
		return run(text, from, number, noLimit)
	}
	return symbols(text, from)
}

// scanLlama3 is the pattern llama3Words, with up to the given number of digits
// in a word (qwen2Words has one).
func scanLlama3(digits int) scanner {
	return func(text string, i int) int {
		if end := contraction(text, i, true); end > i {
			return end
		}
		k, n := classAt(text, i)
		if k&letter != 0 {
			return run(text, i, letter, noLimit)
		}
		if k&(number|newline) == 0 {
			if end := run(text, i+n, letter, noLimit); end > i+n {
				return end
			}
		}
		if k&number != 0 {
			return run(text, i, number, digits)
		}
		return symbolsOrBlank(text, i, "")
	}
}

// symbolsOrBlank is ` ?[^\s\p{L}\p{N}]+[\r\n]*` and the patterns of blank; more
// lists what may follow symbols besides line ends.
func symbolsOrBlank(text string, i int, more string) int {
	from := i
	if text[i] == ' ' {
		from++
	}
	end := symbols(text, from)
	if end == from {
		return blank(text, i, true)
	}
	for end < len(text) && (text[end] == '\n' || text[end] == '\r' || more != "" && text[end] == more[0]) {
		end++
	}
	return end
}

// scanTekken is the pattern tekkenWords.
func scanTekken(text string, i int) int {
	k, n := classAt(text, i)
	if end := cased(text, i, k, n); end > i {
		return end
	}
	if k&number != 0 {
		return i + n
	}
	return symbolsOrBlank(text, i, "/")
}

// cased matches a word of letters and marks, with any other character before it
// if that is no number and no line end: first upper* lower+, then upper+ lower*,
// each with and without the character before.
func cased(text string, i int, k class, n int) int {
	starts := []int{i}
	if k&(letter|number|newline) == 0 {
		starts = []int{i + n, i}
	}
	for _, s := range starts {
		if end := upperLower(text, s); end > s {
			return end
		}
	}
	for _, s := range starts {
		if end := run(text, s, upper, noLimit); end > s {
			return run(text, end, lower, noLimit)
		}
	}
	return i
}

// upperLower matches upper* lower+ at i, as a backtracking engine does.
func upperLower(text string, i int) int {
	end, both := i, -1 // after the last character that is of both kinds
	for {
		k, n := classAt(text, end)
		if k&upper == 0 {
			break
		}
		end += n
		if k&lower != 0 {
			both = end
		}
	}
	if more := run(text, end, lower, noLimit); more > end {
		return more
	}
	return max(both, i)
}
