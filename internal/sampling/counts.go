package sampling

import (
	"fmt"
	"slices"
)

// counts follows a session's tokens and keeps, per distinct token, how often it
// was generated and how often it stands in the repetition window. A history that
// goes on costs one step per new token; any other history is counted anew.
type counts struct {
	generatedOn bool
	window      int // 0: no repetition penalty

	tokens  []int32 // what was counted, to recognise a continuation
	prompt  int
	entries []countEntry    // in order of first occurrence; deterministic
	index   map[int32]int32 // token -> position in entries
}

type countEntry struct {
	token     int32
	generated int32
	window    int32
}

func newCounts(p *Params) counts {
	c := counts{generatedOn: p.penaliseGenerated()}
	if p.penaliseRepetition() {
		c.window = p.window()
	}
	return c
}

// follow brings the counts up to date with h.
func (c *counts) follow(h History, vocab int) error {
	if !c.generatedOn && c.window == 0 {
		return nil
	}
	if h.Prompt < 0 || h.Prompt > len(h.Tokens) {
		return fmt.Errorf("history of %d tokens with %d prompt tokens", len(h.Tokens), h.Prompt)
	}
	n := len(c.tokens)
	// Comparing costs a fraction of reading the logits once, and makes the
	// result depend on the arguments alone.
	if n > len(h.Tokens) || h.Prompt != c.prompt || !slices.Equal(c.tokens, h.Tokens[:n]) {
		c.reset(h.Prompt)
	}
	for _, t := range h.Tokens[len(c.tokens):] {
		if t < 0 || int(t) >= vocab {
			c.reset(0)
			return fmt.Errorf("history holds token %d, vocabulary has %d", t, vocab)
		}
		c.push(t)
	}
	return nil
}

func (c *counts) reset(prompt int) {
	c.tokens, c.prompt, c.entries = c.tokens[:0], prompt, c.entries[:0]
	clear(c.index)
}

func (c *counts) push(token int32) {
	at := len(c.tokens)
	c.tokens = append(c.tokens, token)
	if c.generatedOn && at >= c.prompt {
		c.entry(token).generated++
	}
	if c.window == 0 {
		return
	}
	c.entry(token).window++
	if at >= c.window {
		c.entry(c.tokens[at-c.window]).window--
	}
}

func (c *counts) entry(token int32) *countEntry {
	i, ok := c.index[token]
	if !ok {
		if c.index == nil {
			c.index = make(map[int32]int32)
		}
		i = int32(len(c.entries))
		c.index[token] = i
		c.entries = append(c.entries, countEntry{token: token})
	}
	return &c.entries[i]
}
