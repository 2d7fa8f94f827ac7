package answer

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"hecate/internal/stage"
)

// Hedging: a first token that takes much longer than such a prompt usually takes
// is asked for once more, around the node that keeps us waiting. Whoever speaks
// first goes on; both would say the same. After the first token there is no
// hedging: then a node that is slow is waited for and one that is silent is left.
const (
	hedgeFactor = 4           // times the usual time to the first token
	hedgeFloor  = time.Second // sooner than this nobody is impatient
	hedgeShare  = 20          // at most one answer in so many is hedged
	hedgeSpare  = 2           // so many may be, before the share counts
)

// hedges counts, so that impatience with a loaded swarm does not double its load.
type hedges struct{ answers, hedged atomic.Int64 }

func (h *hedges) allow() bool {
	if h.hedged.Add(1) <= hedgeSpare+h.answers.Load()/hedgeShare {
		return true
	}
	h.hedged.Add(-1)
	return false
}

// First computes the first token. The answer that it returns is the one to go
// on with: this one, or a twin that was faster; the other is closed.
func (a *Answer) First() (*Answer, stage.Token, error) {
	a.run.hedges.answers.Add(1)
	after, ok := a.hedgeAfter()
	if !ok {
		t, err := a.Next()
		return a, t, err
	}
	need := a.need // as it began: from here on it is the race's
	a.contested = true
	race := make(chan outcome, 2)
	go a.race(race)
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case o := <-race:
		return o.stands()
	case <-timer.C:
	}
	slow := a.slowest()
	twin, err := a.twin(need, slow)
	if err != nil {
		return (<-race).stands()
	}
	go twin.race(race) // it opens its stages there: nobody waits for that
	o := a.judge(twin, race)
	if o.answer == twin && o.err == nil {
		twin.hedged(slow)
	}
	return o.stands()
}

// outcome is how one of two twins fared.
type outcome struct {
	answer *Answer
	token  stage.Token
	err    error
}

// stands takes an outcome as the answer's: a failure is a loss now.
func (o outcome) stands() (*Answer, stage.Token, error) {
	o.answer.contested = false
	if o.err != nil {
		o.answer.story.lost(o.answer, o.err)
	}
	return o.answer, o.token, o.err
}

func (a *Answer) race(out chan<- outcome) {
	t, err := a.Next()
	out <- outcome{a, t, err}
}

// judge waits for the first twin that speaks, and closes the other.
func (a *Answer) judge(twin *Answer, race <-chan outcome) outcome {
	o := <-race
	if o.err != nil {
		o.answer.Close()
		return <-race
	}
	loser := twin
	if o.answer == twin {
		loser = a
	}
	loser.cancel()
	<-race // it ends at once, and must before it is closed
	loser.Close()
	return o
}

// hedgeAfter is when to become impatient; never, while nothing was measured.
func (a *Answer) hedgeAfter() (time.Duration, bool) {
	var usual time.Duration
	for _, s := range a.grant.Route.Stages {
		d, ok := a.run.Router.Usual(s.Node, len(a.job.Prompt), s.Layers.Last-s.Layers.First+1)
		if !ok {
			return 0, false
		}
		usual += d
	}
	return max(hedgeFloor, hedgeFactor*usual), true
}

var errNoTwin = errors.New("no second try")

// twin is the same answer once more, around a node that keeps it waiting. Nothing of
// it is open yet.
func (a *Answer) twin(need Need, node string) (*Answer, error) {
	if node == "" || !a.run.hedges.allow() {
		return nil, errNoTwin
	}
	grant, err := a.run.Router.Around(need, a.Route(), node)
	if err != nil {
		return nil, err
	}
	job := a.job
	job.ID += "~" // its stages are not ours
	job.Chaos = nil
	twin := a.run.answer(a.parent, job, grant)
	twin.contested = true
	return twin, nil
}

// slowest names the node that has kept us waiting longest; "" when none does.
func (a *Answer) slowest() string { return a.waits.longest() }

// waits knows since when which node computes a step for us.
type waits struct {
	mu    sync.Mutex
	since map[string]time.Time
}

func (w *waits) begin(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since == nil {
		w.since = map[string]time.Time{}
	}
	w.since[node] = time.Now()
}

func (w *waits) end(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.since, node)
}

func (w *waits) longest() (node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, t := range w.since {
		if node == "" || t.Before(w.since[node]) || t.Equal(w.since[node]) && n < node {
			node = n
		}
	}
	return node
}
