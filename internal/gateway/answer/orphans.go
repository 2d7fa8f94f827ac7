package answer

import (
	"context"

	"hecate/internal/stage"
	"hecate/swarm"
)

// An orphan is a stage whose connection broke, or whose node kept an answer waiting
// too long, and that was left as it was: a reconnect would have found its state. When
// the answer is over nobody will ask for it any more, and the node, if it lives, is
// told so: it would keep the state and its cells for half a minute.
type orphan struct {
	stage   swarm.Stage
	session string
	last    bool // it draws tokens
}

// orphaned notes a stage that is being left.
func (a *Answer) orphaned(l *link) {
	if a.orphans == nil {
		a.orphans = map[orphan]bool{}
	}
	a.orphans[orphan{l.stage, a.sessionOf(l.stage), l.last}] = true
}

// adopted forgets a stage that the answer has again, and will end itself.
func (a *Answer) adopted(l *link) {
	delete(a.orphans, orphan{l.stage, a.sessionOf(l.stage), l.last})
}

// dismiss tells the nodes. It does not wait for them.
func (a *Answer) dismiss() {
	for o := range a.orphans {
		if a.run.Router.Alive(o.stage.Node).Err() == nil {
			go a.dismissOne(o)
		}
	}
	a.orphans = nil
}

// dismissOne takes the stage up once more, and ends it. It ends by itself.
func (a *Answer) dismissOne(o orphan) {
	ctx, cancel := context.WithTimeout(context.Background(), a.limits.OpenTime)
	defer cancel()
	open := stage.Open{
		Session: o.session, Model: a.job.Model, First: o.stage.Layers.First, Last: o.stage.Layers.Last,
		Cells: 1, Rescue: true, Resume: true, Shadow: true, States: o.last && a.job.States != nil,
	}
	if o.last && !open.States {
		open.Sampler = &stage.Sampler{Prompt: 1, Tokens: a.job.Prompt[:1]}
	}
	opening, err := open.Encode()
	if err != nil {
		panic("BUG: an opening that cannot be written: " + err.Error())
	}
	s, err := a.run.Opener.Open(ctx, o.stage.Node, opening, true)
	if err != nil {
		return // it will forget by itself
	}
	_, _ = s.Recv(ctx) // whatever it says: it has read what this is about
	s.End(false)
}
