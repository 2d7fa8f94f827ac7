package gateway

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/live"
	"hecate/internal/gateway/openai"
	"hecate/internal/stage"
)

// piece is what one token added to a choice.
type piece struct {
	choice int
	text   string
	calls  []openai.CallDelta
	tokens []stage.Token // the tokens behind it, for log-probabilities
	finish string        // set on the last piece
	err    error         // instead of all the rest
}

// last says that nothing follows.
func (p piece) last() bool { return p.finish != "" || p.err != nil }

// choice is one of a request's alternatives while it is generated.
type choice struct {
	index   int
	answer  atomic.Pointer[answer.Answer] // replaced once, when a second try was faster
	spoke   bool
	parted  bool // nodes hold nothing of it any more
	speaker Speaker
	ear     *ear // nil: there is nothing to call
	text    Text
	left    int           // tokens that may still be generated
	held    []stage.Token // tokens whose text is not certain yet
	began   time.Time
	first   time.Duration // until the first token
	told    func(*choice) // told at the end of a whole choice
	pulse   *live.Pulse   // told of every token

	produced int // tokens so far, without the one that only ends the turn
}

// next generates until some text is certain or the choice ends.
func (c *choice) next() (piece, error) {
	for {
		token, err := c.token()
		if err != nil {
			return piece{}, err
		}
		if c.text.IsEnd(token.ID) {
			return c.finish(c.speaker.Rest(), openai.FinishStop), nil
		}
		c.left--
		c.produced++
		c.pulse.Token()
		c.held = append(c.held, token)
		text, stopped := c.speaker.Add(token.ID)
		switch {
		case stopped:
			return c.finish(text, openai.FinishStop), nil
		case c.left <= 0:
			return c.finish(text+c.speaker.Rest(), openai.FinishLength), nil
		}
		if text, calls := c.ear.hear(token, text); text != "" || len(calls) > 0 {
			p := piece{choice: c.index, text: text, calls: calls, tokens: c.held}
			c.held = nil
			return p, nil
		}
	}
}

// token computes the next one; for the first, a second try may take over.
func (c *choice) token() (stage.Token, error) {
	if c.spoke {
		return c.answer.Load().Next()
	}
	c.spoke = true
	a, token, err := c.answer.Load().First()
	c.answer.Store(a)
	c.first = time.Since(c.began)
	return token, err
}

func (c *choice) finish(text, reason string) piece {
	c.told(c)
	text, calls := c.ear.rest(text)
	if reason == openai.FinishStop && c.ear.called() {
		reason = openai.FinishCalls
	}
	return piece{choice: c.index, text: text, calls: calls, tokens: c.held, finish: reason}
}

// run sends all pieces of the choice, the last with a finish or an error. When it
// returns, nodes hold nothing of the choice any more.
func (c *choice) run(ctx context.Context, out chan<- piece) {
	defer func() { c.answer.Load().Close() }()
	for {
		p, err := c.next()
		if err != nil {
			p = piece{choice: c.index, err: err}
		}
		select {
		case out <- p:
		default:
			if !c.wait(ctx, out, p) {
				return
			}
		}
		if p.last() {
			c.part(p)
			return
		}
	}
}

// stalled is how long a piece waits for its client before the nodes' needs count.
const stalled = 100 * time.Millisecond

// wait is for a client that has not read what was sent before. Nodes need not wait
// for him as well: an answer that is over leaves them, and so does one that uses
// what they are to give up. It goes on elsewhere, with its tokens, once he reads.
func (c *choice) wait(ctx context.Context, out chan<- piece, p piece) bool {
	look := time.NewTicker(stalled)
	defer look.Stop()
	for {
		select {
		case out <- p:
			return true
		case <-ctx.Done():
			return false
		case <-look.C:
			if p.last() {
				c.part(p)
			} else {
				c.answer.Load().StepAside()
			}
		}
	}
}

// part lets the nodes go after the last piece, once.
func (c *choice) part(last piece) {
	a := c.answer.Load()
	if !c.parted && last.finish != "" && c.produced == a.Generated() {
		a.Settle()
	}
	c.parted = true
	a.Close()
}

// gone says that an error only means that nobody waits for the answer any more.
func gone(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, ctx.Err()))
}
