package answer

import (
	"sync"
	"time"
)

// fallenMemory is how long a failure counts as having happened together with
// another one on the same node: answers notice a death within milliseconds.
const fallenMemory = 500 * time.Millisecond

// casualties knows which answers a node was computing for when it died. An
// answer that was alone with two dying nodes has killed them; one of many has
// most likely not.
type casualties struct {
	mu    sync.Mutex
	nodes map[string]*casualty
}

type casualty struct {
	busy   map[*Answer]int // steps under way
	fallen []fall
}

// fall is an answer's failure. It outlives the answer, so it names its request only.
type fall struct {
	request string
	at      time.Time
}

// request names what the answer was asked for by, alone or together with other
// choices: they have the same prompt, and are no strangers to what it does.
func (a *Answer) request() string {
	if a.job.Request != "" {
		return a.job.Request
	}
	return a.job.ID
}

// enter notes that a node computes a step for an answer.
func (c *casualties) enter(node string, a *Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes == nil {
		c.nodes = map[string]*casualty{}
	}
	n := c.nodes[node]
	if n == nil {
		n = &casualty{busy: map[*Answer]int{}}
		c.nodes[node] = n
	}
	n.busy[a]++
}

// leave notes the end of that step, and whether it failed.
func (c *casualties) leave(node string, a *Answer, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[node]
	if n.busy[a]--; n.busy[a] == 0 {
		delete(n.busy, a)
	}
	if !failed {
		return
	}
	recent := n.fallen[:0]
	for _, f := range n.fallen {
		if time.Since(f.at) < fallenMemory {
			recent = append(recent, f)
		}
	}
	n.fallen = append(recent, fall{a.request(), time.Now()})
}

// others counts the other requests that are busy on the node or fell with it just
// now.
func (c *casualties) others(node string, a *Answer) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[node]
	if n == nil {
		return 0
	}
	seen := map[string]bool{}
	for other := range n.busy {
		seen[other.request()] = true
	}
	for _, f := range n.fallen {
		if time.Since(f.at) < fallenMemory {
			seen[f.request] = true
		}
	}
	delete(seen, a.request())
	return len(seen)
}
