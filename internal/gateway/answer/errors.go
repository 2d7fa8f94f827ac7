package answer

import (
	"errors"
	"fmt"
)

// ErrQueryOfDeath ends an answer whose nodes died at the same position twice:
// it takes no third one with it.
var ErrQueryOfDeath = errors.New("two nodes died at the same position of this answer")

// ErrNoWayOn ends an answer that ran out of nodes, tries or time.
var ErrNoWayOn = errors.New("no way to go on")

// ErrFull is what a Router lacks room with that others have now.
var ErrFull = errors.New("no copy has room now")

// ErrNoRoom ends an answer that had to give way in the middle and waited for room
// in vain.
var ErrNoRoom = errors.New("no room to go on")

// ErrRefused is what a Router may refuse an answer with of which nothing exists
// yet: it was not lost, it never began.
var ErrRefused = errors.New("not admitted")

// ErrSilence is how a Session says that its node answers no more, though nobody
// closed the connection: dead, cut off, or too busy. It convicts no query.
var ErrSilence = errors.New("the node answers no more")

// ErrNoConnection is how an Opener says that there is none to a node, and none can
// be made now.
var ErrNoConnection = errors.New("no connection to the node")

var (
	errNodeDead = errors.New("membership declared the node dead")
	errPatience = errors.New("the step took longer than the node's own average allows")
	// errForgotten: the rows that are asked for were dropped for want of memory.
	errForgotten = errors.New("boundary states were dropped")
)

// stageError is a failure of one stage, at some rows.
type stageError struct {
	stage int
	node  string
	kind  FailureKind
	rows  span // of the steps that were under way; nothing when none was
	err   error
}

func (e *stageError) Error() string {
	return fmt.Sprintf("stage %d on %s, %s: %v", e.stage, e.node, e.kind, e.err)
}
func (e *stageError) Unwrap() error { return e.err }

func (e *stageError) failure() Failure { return Failure{Node: e.node, Kind: e.kind, Err: e.err} }
