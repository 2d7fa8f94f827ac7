package tokens

import (
	"cmp"
	"slices"

	"hecate/internal/tokens/jinja"
)

// trie finds the special tokens that begin at a place of a text.
type trie struct {
	first [256]bool // bytes with which any token begins
	nodes []trieNode
}

type trieNode struct {
	next map[byte]int32
	id   int32 // token that ends here, -1 if none
}

func newTrie(v *vocab) *trie {
	t := &trie{nodes: []trieNode{{id: -1}}}
	for id, text := range v.texts {
		if v.isSpecial(id) {
			t.add(text, int32(id))
		}
	}
	return t
}

func (t *trie) add(text string, id int32) {
	t.first[text[0]] = true
	at := int32(0)
	for i := range len(text) {
		next, ok := t.nodes[at].next[text[i]]
		if !ok {
			next = int32(len(t.nodes))
			t.nodes = append(t.nodes, trieNode{id: -1})
			if t.nodes[at].next == nil {
				t.nodes[at].next = map[byte]int32{}
			}
			t.nodes[at].next[text[i]] = next
		}
		at = next
	}
	if t.nodes[at].id < 0 { // of equal texts, the first counts
		t.nodes[at].id = id
	}
}

// found is a special token in a text.
type found struct {
	start, end int
	id         int32
}

// at appends the tokens that begin at byte i.
func (t *trie) at(text string, i int, out []found) []found {
	node := int32(0)
	for j := i; j < len(text); j++ {
		next, ok := t.nodes[node].next[text[j]]
		if !ok {
			break
		}
		node = next
		if id := t.nodes[node].id; id >= 0 {
			out = append(out, found{i, j + 1, id})
		}
	}
	return out
}

// Marks of who wrote a text.
const (
	byAssistant jinja.Mark = 1 // the model's own earlier words, as a client gives them back
	byOutsider  jinja.Mark = 2 // anyone else
)

// marks tells, going through a text from left to right, who wrote a range.
type marks struct {
	spans []jinja.Span
	i     int
}

// over returns the greatest mark of the bytes from start to end. Starts must not
// decrease from call to call.
func (m *marks) over(start, end int) jinja.Mark {
	for m.i < len(m.spans) && m.spans[m.i].End <= start {
		m.i++
	}
	var mark jinja.Mark
	for _, s := range m.spans[m.i:] {
		if s.Start >= end {
			break
		}
		mark = max(mark, s.Mark)
	}
	return mark
}

// find returns the special tokens of a text in order. As in llama.cpp, longer
// ones go first, wherever they stand, then smaller ids, then from the left.
func (v *vocab) find(text jinja.Text) []found {
	var all, here []found
	who := marks{spans: text.Spans}
	for i := range len(text.S) {
		if !v.specials.first[text.S[i]] {
			continue
		}
		here = v.specials.at(text.S, i, here[:0])
		for _, f := range here {
			mark := who.over(f.start, f.end)
			if v.guarded[f.id] && mark > 0 || v.shielded[f.id] && mark >= byOutsider {
				continue
			}
			all = append(all, f)
		}
	}
	return withoutOverlap(all)
}

func withoutOverlap(all []found) []found {
	overlaps := false
	for i := 1; i < len(all); i++ {
		overlaps = overlaps || all[i].start < all[i-1].end
	}
	if !overlaps {
		return all
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.end-b.start, a.end-a.start), cmp.Compare(a.id, b.id), cmp.Compare(a.start, b.start))
	})
	var kept []found // by start
	for _, f := range all {
		i, _ := slices.BinarySearchFunc(kept, f, func(a, b found) int { return cmp.Compare(a.start, b.start) })
		if i > 0 && kept[i-1].end > f.start || i < len(kept) && kept[i].start < f.end {
			continue
		}
		kept = slices.Insert(kept, i, f)
	}
	return kept
}
