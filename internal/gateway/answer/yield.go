package answer

import (
	"errors"
	"time"
)

// errYields is why an answer left a node that lives.
var errYields = errors.New("the node is to give these layers up")

// stuckPause is how often a way off a node that yields is looked for: every
// look asks the router.
const stuckPause = 250 * time.Millisecond

// MakeWay moves the answer off a node that is to give up what it uses, between
// two calls of Next and only when there is somewhere to go: a rescue without a
// failure. Until then, it goes on where it is. The old node's state is freed at
// once; the new one is fed by the next call of Next, which makes way as well.
func (a *Answer) MakeWay() {
	if a.run.Yields == nil || time.Since(a.stuck) < stuckPause {
		return
	}
	for i, s := range a.grant.Route.Stages {
		if !a.run.Yields(s.Node, a.job.Model, s.Layers) {
			continue
		}
		f := &stageError{stage: i, node: s.Node, kind: Yielding, rows: nothing, err: errYields}
		grant, kind, err := a.run.Router.Rescue(a.ctx, a.need, a.grant, []Failure{f.failure()},
			Progress{Tokens: len(a.tokens), StatesKept: a.statesKept(i)})
		if err != nil {
			a.stuck = time.Now()
			return
		}
		a.story.noticed(f, len(a.tokens))
		a.adopt(grant, kind)
		return // the next token looks at what is left
	}
}

// StepAside is MakeWay for an answer whose client takes nothing for now. When there
// is nowhere to go, it leaves all the same what is to be given up: its tokens are
// enough to begin there or elsewhere once more, when somebody wants the next one.
func (a *Answer) StepAside() {
	a.MakeWay()
	for i, s := range a.grant.Route.Stages {
		if a.run.Yields != nil && a.run.Yields(s.Node, a.job.Model, s.Layers) {
			a.leave(i)
		}
	}
}
