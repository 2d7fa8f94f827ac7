package tokens

import (
	"fmt"
	"strings"
)

// bytePairs is byte-level BPE: the text is cut into words, the bytes of each
// word are merged, the merge of the lowest rank first, the leftmost among equals.
type bytePairs struct {
	pre     preTokenizer
	split   splitter
	words   map[string]int32 // whole tokens by their bytes, if merges may be skipped
	byteIDs [256]int32
	merges  map[uint64]pairMerge
	unknown int32
}

// pairMerge is what two neighbouring tokens become.
type pairMerge struct{ rank, id int32 }

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

func newBytePairs(v *vocab, s *Source) (*bytePairs, error) {
	pre, ok := preTokenizers[s.Pre]
	switch {
	case s.Pre == "":
		return nil, fmt.Errorf("%w: the file lacks tokenizer.ggml.pre, so how it cuts words is unknown; convert it again with a newer converter", ErrUnsupported)
	case !ok:
		return nil, fmt.Errorf("%w: tokenizer.ggml.pre is %q, which is not supported", ErrUnsupported, s.Pre)
	}
	m := &bytePairs{pre: pre, merges: make(map[uint64]pairMerge, len(s.Merges)), unknown: v.unknown}
	var err error
	if m.split, err = newSplitter(pre); err != nil {
		return nil, fmt.Errorf("pre-tokenizer %q: %w", s.Pre, err)
	}
	ids := make(map[string]int32, len(v.texts))
	for id, text := range v.texts {
		if _, doubled := ids[text]; !doubled && v.mergeable(id) {
			ids[text] = int32(id)
		}
	}
	for b := range m.byteIDs {
		m.byteIDs[b] = -1
		if id, ok := ids[string(byteToRune[b])]; ok {
			m.byteIDs[b] = id
		}
	}
	if pre.ignoreMerges {
		m.words = make(map[string]int32, len(ids))
		for _, id := range ids {
			if v.types[id] != TypeUserDefined {
				m.words[string(v.bytes[id])] = id
			}
		}
	}
	return m, m.readMerges(s.Merges, ids)
}

func (m *bytePairs) readMerges(merges []string, ids map[string]int32) error {
	for rank, text := range merges {
		// The right part may be a space only in damaged files; the left never
		// begins with one in the byte alphabet.
		left, right, ok := strings.Cut(text, " ")
		if !ok || left == "" || right == "" {
			return fmt.Errorf("merge %d is %q, must be two tokens", rank, text)
		}
		l, ok1 := ids[left]
		r, ok2 := ids[right]
		both, ok3 := ids[left+right]
		if !ok1 || !ok2 || !ok3 {
			continue // leads to no token
		}
		key := pairKey(l, r)
		if _, doubled := m.merges[key]; !doubled {
			m.merges[key] = pairMerge{int32(rank), both}
		}
	}
	return nil
}

func (m *bytePairs) encode(text string, out []int32) []int32 {
	var w wordMerger
	m.split.words(text, func(word string) {
		out = w.encode(m, word, out)
	})
	return out
}

type bpeMerge struct {
	rank, id    int32
	left, right int32 // positions
	l, r        int32 // the ids found there: tells stale ones
}

// wordMerger merges one word after the other in the same memory.
type wordMerger struct {
	ids        []int32 // -1: merged into its left neighbour
	prev, next []int32
	queue      minHeap[bpeMerge]
}

func (w *wordMerger) encode(m *bytePairs, word string, out []int32) []int32 {
	if m.words != nil {
		if id, ok := m.words[word]; ok {
			return append(out, id)
		}
	}
	w.start(m, word)
	for i := 1; i < len(w.ids); i++ {
		w.consider(m, int32(i-1), int32(i))
	}
	for len(w.queue.items) > 0 {
		b := w.queue.pop()
		if w.ids[b.left] != b.l || w.ids[b.right] != b.r || w.next[b.left] != b.right {
			continue
		}
		w.ids[b.left], w.ids[b.right] = b.id, gone
		after := w.next[b.right]
		w.next[b.left] = after
		if after >= 0 {
			w.prev[after] = b.left
		}
		w.consider(m, w.prev[b.left], b.left)
		w.consider(m, b.left, after)
	}
	for _, id := range w.ids {
		switch {
		case id >= 0:
			out = append(out, id)
		case id == noToken && m.unknown >= 0:
			out = append(out, m.unknown)
		}
	}
	return out
}

const (
	gone    = -1 // merged into a neighbour
	noToken = -2 // a byte without a token
)

func (w *wordMerger) start(m *bytePairs, word string) {
	w.ids, w.prev, w.next = w.ids[:0], w.prev[:0], w.next[:0]
	w.queue.items = w.queue.items[:0]
	w.queue.before = func(a, b *bpeMerge) bool { return a.rank < b.rank || a.rank == b.rank && a.left < b.left }
	for i := range len(word) {
		id := m.byteIDs[word[i]]
		if id < 0 {
			id = noToken
		}
		w.ids = append(w.ids, id)
		w.prev = append(w.prev, int32(i-1))
		w.next = append(w.next, int32(i+1))
	}
	if n := len(word); n > 0 {
		w.next[n-1] = -1
	}
}

func (w *wordMerger) consider(m *bytePairs, left, right int32) {
	if left < 0 || right < 0 {
		return
	}
	l, r := w.ids[left], w.ids[right]
	if merge, ok := m.merges[pairKey(l, r)]; ok && l >= 0 && r >= 0 {
		w.queue.push(bpeMerge{merge.rank, merge.id, left, right, l, r})
	}
}
