package answer

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"hecate/swarm"
)

// A prompt and its shadows: chunks during which shadows compute take turns with
// such during which they wait. Chunks grow slower the further a prompt is, so each
// turn of the shadows is compared with the chunks before it and behind it. On
// machines of their own shadows have most of the turns; where they slow the prompt,
// they have so few that it takes no more than shadowPrice longer.
const (
	firstChunks = 3  // of a prompt, that shadows let pass; the first one fills the pipeline
	aloneChunks = 3  // in a row: a shadow's last step reaches into the first of them
	trialChunks = 2  // of the shadows' first turn
	fedChunks   = 16 // of a later one, at most: each may be twice as long as the last
	mostAlone   = 48
)

// turns is whose turn it is. It belongs to the answer's goroutine, but for on.
type turns struct {
	on     atomic.Bool // a prompt is being computed
	chunks int         // so far
	fed    bool        // it is the shadows' turn
	left   int         // chunks of this turn

	steps int64 // of shadows, at the end of the last chunk
	busy  bool  // one was computing then

	longest int // that the next turn of the shadows may be

	before, with, after mean // time per row: ahead of the shadows' turn, in it, behind it
	slowdown            swarm.Reading
}

// mean is an average of some samples.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(x float64) { m.sum, m.n = m.sum+x, m.n+1 }
func (m mean) value() float64 { return m.sum / float64(m.n) }

// begin lets the prompt's first chunks pass. Where it is known already how much shadows
// slow prompts, they have their first turn no sooner than any other.
func (t *turns) begin(slowdown swarm.Reading, g *gate) {
	t.on.Store(true)
	t.slowdown, t.longest = slowdown, trialChunks
	_, alone := t.share()
	t.left = firstChunks + alone - aloneChunks
	g.shut()
}

// end lets shadows that do not slow the prompt catch up. Others wait until it is known
// how fast the answer is by itself.
func (t *turns) end(g *gate) {
	t.on.Store(false)
	if t.slowdown.Known && t.slowdown.Value <= shadowPrice {
		g.open()
	} else {
		g.shut()
	}
}

// take notes how long a row of the last chunk took, and changes turns.
func (t *turns) take(perRow float64, steps int64, busy bool, g *gate) {
	touched := busy || t.busy || steps != t.steps
	t.steps, t.busy = steps, busy
	if t.chunks++; t.chunks == 1 {
		t.left-- // it filled the pipeline
		return
	}
	switch {
	case touched:
		t.with.add(perRow)
	case t.with.n > 0:
		t.after = mean{perRow, 1} // the last: further stages still have chunks that were slowed
	default:
		t.before.add(perRow)
	}
	if t.left--; t.left > 0 {
		return
	}
	if t.fed {
		g.shut()
	} else {
		t.compare()
		g.open()
	}
	fed, alone := t.share()
	if t.fed = !t.fed; t.fed {
		t.left = fed
	} else {
		t.left = alone
	}
}

// compare closes a round: what is behind this turn is ahead of the next.
func (t *turns) compare() {
	if t.before.n > 0 && t.with.n > 0 && t.after.n > 0 {
		t.slowdown = t.slowdown.Observe(2*t.with.value()/(t.before.value()+t.after.value()) - 1)
		t.longest = min(2*t.longest, fedChunks)
	}
	if t.after.n > 0 {
		t.before = t.after
	}
	t.with, t.after = mean{}, mean{}
}

// share is how many chunks a turn of the shadows has, and the one after it.
func (t *turns) share() (fed, alone int) {
	if !t.slowdown.Known {
		return trialChunks, aloneChunks
	}
	most := float64(fedChunks) / (fedChunks + aloneChunks)
	s := shadowPrice / max(t.slowdown.Value, shadowPrice/most)
	if fed := math.Round(aloneChunks * s / (1 - s)); fed >= 1 {
		return min(int(fed), t.longest), aloneChunks
	}
	return 1, min(int(math.Round((1-s)/s)), mostAlone)
}

// rivalry remembers by how much shadows slowed the last prompts, by route: places of
// shadows follow from it.
type rivalry struct {
	mu    sync.Mutex
	known map[string]swarm.Reading
}

// mostRoutes are remembered; then all are forgotten.
const mostRoutes = 1024

func (r *rivalry) of(route swarm.Route) swarm.Reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[placesOf(route)]
}

func (r *rivalry) note(route swarm.Route, slowdown swarm.Reading) {
	if !slowdown.Known {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= mostRoutes {
		r.known = map[string]swarm.Reading{}
	}
	r.known[placesOf(route)] = slowdown
}

func placesOf(route swarm.Route) string {
	var out strings.Builder
	for _, s := range route.Stages {
		out.WriteString(s.String())
	}
	return route.Model + ":" + out.String()
}
