package swarm

import (
	"errors"
	"fmt"
	"strings"
)

// What callers branch on. The detailed types below match these with errors.Is.
var (
	// ErrNoRoute: no chain of living nodes covers the window, or no planned
	// copy is whole.
	ErrNoRoute = errors.New("no route")
	// ErrUnrecoverable: a node died and nothing may stand in for it. A signal
	// for the orchestrator, which decides to degrade or to stop; not a fault.
	ErrUnrecoverable = errors.New("unrecoverable")
	// ErrStopped: the swarm was stopped.
	ErrStopped = errors.New("swarm is stopped")
	// ErrInvalid: the input itself is wrong; nothing was decided or changed.
	ErrInvalid = errors.New("invalid input")
)

// A Rejection says why one planned copy cannot be used.
type Rejection struct {
	PipelineID int    `json:"pipeline_id"`
	Node       string `json:"node,omitempty"` // the node that disqualifies it, when it is one
	Reason     string `json:"reason"`
}

func (r Rejection) String() string {
	if r.Node == "" {
		return fmt.Sprintf("pipeline %d: %s", r.PipelineID, r.Reason)
	}
	return fmt.Sprintf("pipeline %d: %s %s", r.PipelineID, r.Node, r.Reason)
}

// A NoRouteError says where the search for a route ended. It matches ErrNoRoute.
type NoRouteError struct {
	Model    string
	Window   LayerRange  // Unstated when nobody living holds the model at all
	Furthest int         // the boundary (layer) that was reached and from which nobody continues; -1 when not searched
	Rejected []Rejection // the planned copies and what disqualifies each
	Reason   string      // more, when there is more to say
	Lack     Lack        // what has to change; the adaptive router tells, others leave LackNodes
}

func (e *NoRouteError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no route for model %q", e.Model)
	if e.Window.Stated() {
		fmt.Fprintf(&b, " over layers %s", e.Window)
	}
	if e.Furthest >= 0 && e.Window.Stated() {
		fmt.Fprintf(&b, ": reached layer %d, from which no living node continues", e.Furthest)
	}
	if e.Reason != "" {
		fmt.Fprintf(&b, ": %s", e.Reason)
	}
	for i, r := range e.Rejected {
		b.WriteString(separator(i))
		b.WriteString(r.String())
	}
	return b.String()
}

// Is reports whether target is ErrNoRoute.
func (e *NoRouteError) Is(target error) bool { return target == ErrNoRoute }

// An UnrecoverableError says which layers nobody can take over. It matches
// ErrUnrecoverable.
type UnrecoverableError struct {
	Model  string
	Window LayerRange   // of the broken route; Unstated when unknown
	Failed []string     // the nodes that count as failed, in route order
	Lost   []LayerRange // what they ran that has no other living holder
	Reason string
}

func (e *UnrecoverableError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "unrecoverable: model %q", e.Model)
	if e.Window.Stated() {
		fmt.Fprintf(&b, " over layers %s", e.Window)
	}
	fmt.Fprintf(&b, " lost %s", strings.Join(e.Failed, ", "))
	if len(e.Lost) > 0 {
		parts := make([]string, len(e.Lost))
		for i, r := range e.Lost {
			parts[i] = r.String()
		}
		fmt.Fprintf(&b, ": no other living holder of layers %s", strings.Join(parts, ", "))
	}
	if e.Reason != "" {
		fmt.Fprintf(&b, ": %s", e.Reason)
	}
	return b.String()
}

// Is reports whether target is ErrUnrecoverable.
func (e *UnrecoverableError) Is(target error) bool { return target == ErrUnrecoverable }

// A FieldError names the node and the field of a sample that was refused. It
// matches ErrInvalid.
type FieldError struct {
	Node    string // "" when the sample does not even name its node
	Field   string
	Problem string
}

func (e *FieldError) Error() string {
	if e.Node == "" {
		return fmt.Sprintf("node state: field %s %s", e.Field, e.Problem)
	}
	return fmt.Sprintf("node %q: field %s %s", e.Node, e.Field, e.Problem)
}

// Is reports whether target is ErrInvalid.
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

func separator(i int) string {
	if i == 0 {
		return ": "
	}
	return "; "
}
