package grammar

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
)

// Vocabulary is a model's tokens, laid out to be walked. It remembers the
// grammars that were used last. Safe for concurrent use.
type Vocabulary struct {
	bytes [][]byte // what each token stands for; empty for control tokens
	ends  []int32  // tokens after which an answer is over, ascending
	trie  []trieNode
	ids   []int32 // the tokens of the trie's nodes

	mu struct {
		sync.Mutex
		automata map[string]*Automaton
		used     []string // keys of automata, the last used at the end
		locals   map[localKey]*local
		nodes    int // of all automata
		room     int // bytes that locals may still take
	}
}

// trieNode is one byte of tokens. Nodes stand in the order of a walk: a node,
// then all that goes on from it.
type trieNode struct {
	b        byte
	depth    int32 // bytes up to and with this one
	end      int32 // behind the last node that goes on from this one
	ids, len int32 // tokens that end here, in Vocabulary.ids
}

const (
	keptNodes = 4 * MaxNodes // of automata that are not in use
	localRoom = 64 << 20     // bytes of what nodes accept; then it is computed anew
)

type localKey struct {
	rule [sha256.Size]byte
	at   int32
}

// NewVocabulary lays out the bytes of all tokens, by id. Control tokens stand for
// none. ends are the tokens that may end an answer; there must be one.
func NewVocabulary(tokens [][]byte, ends []int32) (*Vocabulary, error) {
	v := &Vocabulary{bytes: tokens, ends: slices.Clone(ends)}
	slices.Sort(v.ends)
	if len(ends) == 0 {
		return nil, fmt.Errorf("the vocabulary has no token that ends an answer")
	}
	for _, id := range ends {
		if id < 0 || int(id) >= len(tokens) {
			return nil, fmt.Errorf("token %d ends answers, but there are %d tokens", id, len(tokens))
		}
	}
	var order []int32
	for id, b := range tokens {
		if len(b) > 0 && !slices.Contains(ends, int32(id)) {
			order = append(order, int32(id))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		if c := bytes.Compare(tokens[a], tokens[b]); c != 0 {
			return c
		}
		return int(a - b)
	})
	v.grow(order)
	v.mu.automata = map[string]*Automaton{}
	v.forgetLocked()
	return v, nil
}

// grow makes the trie of tokens in order of their bytes.
func (v *Vocabulary) grow(order []int32) {
	var path []int32 // nodes from the root to the last one made
	var last []byte
	for _, id := range order {
		b := v.bytes[id]
		same := 0
		for same < len(last) && same < len(b) && last[same] == b[same] {
			same++
		}
		for _, n := range path[same:] {
			v.trie[n].end = int32(len(v.trie))
		}
		path = path[:same]
		for ; same < len(b); same++ {
			path = append(path, int32(len(v.trie)))
			v.trie = append(v.trie, trieNode{b: b[same], depth: int32(same + 1), ids: int32(len(v.ids))})
		}
		v.ids = append(v.ids, id)
		v.trie[path[len(path)-1]].len++
		last = b
	}
	for _, n := range path {
		v.trie[n].end = int32(len(v.trie))
	}
}

// Size is the number of tokens.
func (v *Vocabulary) Size() int { return len(v.bytes) }

// IsEnd says whether an answer is over after a token.
func (v *Vocabulary) IsEnd(id int32) bool {
	_, ok := slices.BinarySearch(v.ends, id)
	return ok
}

// Automaton compiles a grammar, or finds the one it made of it before. Errors
// wrap ErrTooLarge, ErrEndless or ErrInvalid.
func (v *Vocabulary) Automaton(g *Grammar) (*Automaton, error) {
	key := g.key()
	v.mu.Lock()
	a := v.mu.automata[key]
	v.mu.Unlock()
	if a == nil {
		var err error
		if a, err = compile(g, v); err != nil {
			return nil, fmt.Errorf("grammar: %w", err)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if known := v.mu.automata[key]; known != nil {
		a = known
		at := slices.Index(v.mu.used, key)
		v.mu.used = slices.Delete(v.mu.used, at, at+1)
	} else {
		v.mu.automata[key] = a
		v.mu.nodes += len(a.nodes)
	}
	v.mu.used = append(v.mu.used, key)
	for v.mu.nodes > keptNodes {
		oldest := v.mu.used[0]
		v.mu.nodes -= len(v.mu.automata[oldest].nodes)
		delete(v.mu.automata, oldest)
		v.mu.used = slices.Delete(v.mu.used, 0, 1)
	}
	return a, nil
}

// Check says whether a grammar compiles, without a vocabulary.
func Check(g *Grammar) error {
	_, err := compile(g, nil)
	return err
}

func (v *Vocabulary) forgetLocked() {
	v.mu.locals, v.mu.room = map[localKey]*local{}, localRoom
}

// localOf is what a node accepts without leaving its rule. Two goroutines may
// find it out at once: they find the same.
func (v *Vocabulary) localOf(a *Automaton, at int32) *local {
	key := localKey{a.keyOf(a.nodes[at].rule), a.nodes[at].at}
	v.mu.Lock()
	l := v.mu.locals[key]
	v.mu.Unlock()
	if l != nil {
		return l
	}
	l = a.local(at)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mu.room -= l.size(); v.mu.room < 0 {
		v.forgetLocked()
		v.mu.room -= l.size()
	}
	v.mu.locals[key] = l
	return l
}

// Bytes is what a token stands for: nothing for control tokens.
func (v *Vocabulary) Bytes(id int32) []byte { return v.bytes[id] }
