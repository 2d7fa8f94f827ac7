package tokens

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// sentencePiece merges neighbouring pieces, the best-scored pair first, the
// leftmost among equals; what no piece covers becomes byte tokens.
type sentencePiece struct {
	pieces      map[string]int32
	scores      []float32
	longest     int // bytes of the longest piece
	byteIDs     [256]int32
	unknown     int32
	prefixSpace bool
}

func newSentencePiece(v *vocab, s *Source) (*sentencePiece, error) {
	m := &sentencePiece{pieces: make(map[string]int32, len(v.texts)), scores: s.Scores, unknown: v.unknown, prefixSpace: true}
	if s.AddSpacePrefix != nil {
		m.prefixSpace = *s.AddSpacePrefix
	}
	for b := range m.byteIDs {
		m.byteIDs[b] = -1
	}
	for id, text := range v.texts {
		if v.types[id] == TypeByte {
			m.byteIDs[v.bytes[id][0]] = int32(id)
		}
		if !v.mergeable(id) {
			continue
		}
		if _, doubled := m.pieces[text]; !doubled {
			m.pieces[text] = int32(id)
			m.longest = max(m.longest, len(text))
		}
	}
	for b, id := range m.byteIDs {
		if id < 0 && m.unknown < 0 {
			return nil, fmt.Errorf("neither a token for byte 0x%02X nor one for unknown text", b)
		}
	}
	return m, nil
}

// symbol is a range of the text that is one piece so far; merged ones are empty.
type symbol struct {
	start, end int32
	prev, next int32
}

type spmMerge struct {
	score       float32
	left, right int32
	size        int32 // bytes of both when the merge was found: tells stale ones
}

func (m *sentencePiece) encode(text string, out []int32) []int32 {
	if m.prefixSpace { // llama.cpp adds it at the start and after special tokens
		text = " " + text
	}
	text = strings.ReplaceAll(text, " ", spaceMark)
	symbols := splitRunes(text)
	queue := minHeap[spmMerge]{before: func(a, b *spmMerge) bool {
		return a.score > b.score || a.score == b.score && a.left < b.left
	}}
	consider := func(left, right int32) {
		if left < 0 || right < 0 {
			return
		}
		from, to := symbols[left].start, symbols[right].end
		if int(to-from) > m.longest {
			return
		}
		if id, ok := m.pieces[text[from:to]]; ok {
			queue.push(spmMerge{m.scores[id], left, right, to - from})
		}
	}
	for i := 1; i < len(symbols); i++ {
		consider(int32(i-1), int32(i))
	}
	for len(queue.items) > 0 {
		b := queue.pop()
		left, right := &symbols[b.left], &symbols[b.right]
		if left.start == left.end || right.start == right.end || right.end-left.start != b.size {
			continue
		}
		join(symbols, b.left, b.right)
		consider(left.prev, b.left)
		consider(b.left, left.next)
	}
	for _, s := range symbols {
		if s.start < s.end {
			out = m.emit(text[s.start:s.end], out)
		}
	}
	return out
}

// emit appends the token of a piece, or those of its bytes.
func (m *sentencePiece) emit(piece string, out []int32) []int32 {
	if id, ok := m.pieces[piece]; ok {
		return append(out, id)
	}
	for i := range len(piece) {
		if id := m.byteIDs[piece[i]]; id >= 0 {
			out = append(out, id)
		} else {
			return append(out, m.unknown)
		}
	}
	return out
}

// splitRunes makes one symbol of each character.
func splitRunes(text string) []symbol {
	symbols := make([]symbol, 0, len(text))
	for i := 0; i < len(text); {
		_, n := utf8.DecodeRuneInString(text[i:])
		k := int32(len(symbols))
		symbols = append(symbols, symbol{int32(i), int32(i + n), k - 1, k + 1})
		i += n
	}
	if len(symbols) > 0 {
		symbols[len(symbols)-1].next = -1
	}
	return symbols
}

// join merges the right symbol into the left one.
func join(symbols []symbol, left, right int32) {
	l, r := &symbols[left], &symbols[right]
	l.end, l.next = r.end, r.next
	if r.next >= 0 {
		symbols[r.next].prev = left
	}
	r.end = r.start
}
