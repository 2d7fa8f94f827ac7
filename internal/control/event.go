package control

import (
	"fmt"
	"time"
)

// An Event is something that happened to a member. Logs, metrics, dashboard
// and tests listen to the same ones.
type Event interface {
	fmt.Stringer
	// About names the node.
	About() string
}

// Cause says what condemned a node.
type Cause int

const (
	CauseSilence Cause = iota // no report for too long
	CauseReset                // the data plane's connections broke, and no new one is answered
	CauseRefused              // ... and new ones are refused
	CauseRestart              // a newer start of it registered
)

func (c Cause) String() string {
	switch c {
	case CauseSilence:
		return "silence"
	case CauseReset:
		return "connection reset"
	case CauseRefused:
		return "connection refused"
	case CauseRestart:
		return "it was started anew"
	}
	panic("BUG: no such cause")
}

// Joined: a node was heard for the first time, or again after it had left.
type Joined struct {
	Node        string
	Incarnation uint64
}

// Suspected: two reports of a node were missed.
type Suspected struct {
	Node    string
	Silence time.Duration
}

// Died: a node was silent for too long, or its connection was reset.
type Died struct {
	Node    string
	Cause   Cause
	Silence time.Duration // since it was last heard
}

// Returned: a suspect or dead node was heard again.
type Returned struct {
	Node    string
	After   time.Duration // since it was suspected or died
	WasDead bool
}

// Left: a node said goodbye, or was removed.
type Left struct {
	Node    string
	Removed bool
}

// Ghost: an old start of a node still reports, after a newer one registered.
type Ghost struct {
	Node        string
	Incarnation uint64
	Current     uint64
}

func (e Ghost) About() string     { return e.Node }
func (e Joined) About() string    { return e.Node }
func (e Suspected) About() string { return e.Node }
func (e Died) About() string      { return e.Node }
func (e Returned) About() string  { return e.Node }
func (e Left) About() string      { return e.Node }

func (e Joined) String() string {
	return fmt.Sprintf("node %s joined (incarnation %d)", e.Node, e.Incarnation)
}

func (e Suspected) String() string {
	return fmt.Sprintf("node %s is suspect: silent for %s", e.Node, rounded(e.Silence))
}

func (e Died) String() string {
	return fmt.Sprintf("node %s is dead: %s (last heard %s ago)", e.Node, e.Cause, rounded(e.Silence))
}

func (e Returned) String() string {
	was := "suspect"
	if e.WasDead {
		was = "dead"
	}
	return fmt.Sprintf("node %s is back after %s as %s", e.Node, rounded(e.After), was)
}

func (e Left) String() string {
	if e.Removed {
		return fmt.Sprintf("node %s was removed", e.Node)
	}
	return fmt.Sprintf("node %s left", e.Node)
}

func (e Ghost) String() string {
	return fmt.Sprintf("an old start of node %s (incarnation %d, current %d) still reports", e.Node, e.Incarnation, e.Current)
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
