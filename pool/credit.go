package pool

import (
	"slices"

	"hecate/pool/wire"
)

// credit is what a session may still send before the peer returns some. It is
// a value under the session's lock.
type credit struct {
	windowBytes, windowMessages int // what the peer advertised
	bytes, messages             int // left; 0 <= bytes <= windowBytes, likewise messages
	waiting                     []*creditWaiter
	spare                       *creditWaiter // for the next one that waits, nil if none
}

// creditWaiter is a Send in line for credit.
type creditWaiter struct {
	bytes   int
	granted chan struct{} // capacity 1: the credit is taken
}

func newCredit(windowBytes, windowMessages uint32) credit {
	b := int(min(windowBytes, wire.MaxMessage))
	m := int(min(windowMessages, 1<<20))
	return credit{windowBytes: b, windowMessages: m, bytes: b, messages: m}
}

// spend takes credit for one message if there is enough and nobody is in line.
func (c *credit) spend(n int) bool {
	if len(c.waiting) > 0 || n > c.bytes || c.messages == 0 {
		return false
	}
	c.bytes -= n
	c.messages--
	return true
}

// give returns credit and serves the line. It reports false when the peer
// returned more than was spent; the excess is cut off.
func (c *credit) give(bytes, messages int) bool {
	c.bytes += bytes
	c.messages += messages
	honest := c.bytes <= c.windowBytes && c.messages <= c.windowMessages
	c.bytes = min(c.bytes, c.windowBytes)
	c.messages = min(c.messages, c.windowMessages)
	served := 0
	for _, w := range c.waiting {
		if w.bytes > c.bytes || c.messages == 0 {
			break
		}
		c.bytes -= w.bytes
		c.messages--
		w.granted <- struct{}{}
		served++
	}
	c.waiting = slices.Delete(c.waiting, 0, served)
	return honest
}

// queue puts a message of n bytes in line.
func (c *credit) queue(n int) *creditWaiter {
	w := c.spare
	if w == nil {
		w = &creditWaiter{granted: make(chan struct{}, 1)}
	}
	c.spare, w.bytes = nil, n
	c.waiting = append(c.waiting, w)
	return w
}

// leave takes a waiter out of the line; false: it was served already.
func (c *credit) leave(w *creditWaiter) bool {
	i := slices.Index(c.waiting, w)
	if i < 0 {
		return false
	}
	c.waiting = slices.Delete(c.waiting, i, i+1)
	c.give(0, 0) // whoever stood behind may fit
	return true
}
