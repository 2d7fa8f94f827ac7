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
	// apart says that no piece goes on over a space into another word, so that
	// words can be merged one by one, which is faster and changes nothing.
	apart bool
}

func newSentencePiece(v *vocab, s *Source) (*sentencePiece, error) {
	m := &sentencePiece{pieces: make(map[string]int32, len(v.texts)), scores: s.Scores, unknown: v.unknown, prefixSpace: true, apart: true}
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
			m.apart = m.apart && nextWord(text) == len(text)
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

// nextWord returns where the second word begins: at a space mark after another
// character.
func nextWord(text string) int {
	word := strings.TrimLeft(text, spaceMark)
	if i := strings.Index(word, spaceMark); i >= 0 {
		return len(text) - len(word) + i
	}
	return len(text)
}

func (m *sentencePiece) encode(text string, out []int32) []int32 {
	if m.prefixSpace { // llama.cpp adds it at the start and after special tokens
		text = " " + text
	}
	text = strings.ReplaceAll(text, " ", spaceMark)
	w := spmMerger{m: m, queue: minHeap[spmMerge]{before: func(a, b *spmMerge) bool {
		return a.score > b.score || a.score == b.score && a.left < b.left
	}}}
	for text != "" {
		end := len(text)
		if m.apart {
			end = nextWord(text)
		}
		out = w.encode(text[:end], out)
		text = text[end:]
	}
	return out
}

// spmMerger merges one stretch after the other in the same memory.
type spmMerger struct {
	m       *sentencePiece
	text    string
	symbols []symbol
	queue   minHeap[spmMerge]
}

func (w *spmMerger) encode(text string, out []int32) []int32 {
	w.text, w.symbols = text, splitRunes(text, w.symbols[:0])
	for i := 1; i < len(w.symbols); i++ {
		w.consider(int32(i-1), int32(i))
	}
	for len(w.queue.items) > 0 {
		b := w.queue.pop()
		left, right := &w.symbols[b.left], &w.symbols[b.right]
		if left.start == left.end || right.start == right.end || right.end-left.start != b.size {
			continue
		}
		join(w.symbols, b.left, b.right)
		w.consider(left.prev, b.left)
		w.consider(b.left, left.next)
	}
	for _, s := range w.symbols {
		if s.start < s.end {
			out = w.m.emit(text[s.start:s.end], out)
		}
	}
	return out
}

// consider queues the merge of two neighbours if there is a piece for it.
func (w *spmMerger) consider(left, right int32) {
	if left < 0 || right < 0 {
		return
	}
	from, to := w.symbols[left].start, w.symbols[right].end
	if int(to-from) > w.m.longest {
		return
	}
	if id, ok := w.m.pieces[w.text[from:to]]; ok {
		w.queue.push(spmMerge{w.m.scores[id], left, right, to - from})
	}
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
func splitRunes(text string, symbols []symbol) []symbol {
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
