package node

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"hecate/internal/stage"
)

// dropTime is how long a node that was told to drop its packets stays mute.
const dropTime = 15 * time.Second

// chaos lets a gateway arm failures of this very process. A nil *chaos refuses.
type chaos struct {
	hole *Hole
}

// failure strikes once, just before the step that computes a given token.
type failure struct {
	once   sync.Once
	row    int // the position whose result is that token
	action func()
}

var errNoChaos = &stage.Error{Code: stage.CodeBad, Message: "this node was not started with --allow-chaos"}

// arm makes the failure that an Open asks for; nil when it asks for none.
func (c *chaos) arm(o *stage.Chaos) (*failure, error) {
	if o == nil {
		return nil, nil
	}
	if c == nil {
		return nil, errNoChaos
	}
	f := &failure{row: o.Prompt - 1 + o.AtToken}
	switch o.Action {
	case "kill":
		f.action = func() { signalSelf(syscall.SIGKILL) }
	case "stop":
		f.action = func() { signalSelf(syscall.SIGSTOP) }
	case "drop":
		f.action = func() { c.hole.Swallow(dropTime) }
	default:
		return nil, &stage.Error{Code: stage.CodeBad, Message: fmt.Sprintf("no such failure: %q; there are kill, stop and drop", o.Action)}
	}
	return f, nil
}

// strike fails if the step is the one.
func (f *failure) strike(s stage.Step) {
	if f != nil && s.Position+s.Rows() > f.row {
		f.once.Do(f.action)
	}
}
