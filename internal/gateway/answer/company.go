package answer

import (
	"context"
	"sync/atomic"
	"time"
)

// company is the nodes that an answer's routes have led over. When nodes die that
// were computing nothing of it, then what kills them is not the answer.
type company struct{ members []*companion }

// companion is one life of one node.
type companion struct {
	node string
	life context.Context // ends when the node is declared dead
	died atomic.Pointer[time.Time]
	stop func() bool
}

// join notes that a node takes part.
func (c *company) join(node string, life context.Context) {
	for _, m := range c.members {
		if m.node == node && m.life.Err() == nil {
			return
		}
	}
	m := &companion{node: node, life: life}
	m.stop = context.AfterFunc(life, func() {
		now := time.Now()
		m.died.Store(&now)
	})
	c.members = append(c.members, m)
}

// part ends the watch.
func (c *company) part() {
	for _, m := range c.members {
		m.stop()
	}
	c.members = nil
}

// otherDeaths says that a node died since then which is none of these.
func (c *company) otherDeaths(since time.Time, these map[string]bool) bool {
	for _, m := range c.members {
		if at := m.died.Load(); at != nil && !at.Before(since) && !these[m.node] {
			return true
		}
	}
	return false
}
