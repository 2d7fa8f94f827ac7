package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/admin"
	"hecate/swarm"
)

type nodeLsCmd struct {
	administered
	All bool `help:"Also those that were removed."`
}

// Run lists nodes.
func (n *nodeLsCmd) Run(ctx context.Context, c console) error {
	list := func(client *admin.Client, ctx context.Context) ([]admin.NodeInfo, error) {
		nodes, err := client.Nodes(ctx)
		return slices.DeleteFunc(nodes, func(i admin.NodeInfo) bool {
			return !n.All && i.Record != nil && i.Record.Desired == control.DesiredRemoved
		}), err
	}
	return listed(ctx, c, n.administered, list, "NODE\tSTATE\tWANTED\tHOST\tHEARD\tMEMORY\tHOLDS", nodeRow)
}

func nodeRow(n admin.NodeInfo) string {
	id, wanted, host, budget := "?", "-", "-", int64(0)
	if r := n.Record; r != nil {
		id, wanted, host, budget = r.ID, string(r.Desired), orDash(r.Host), r.Profile.MemoryBytes
	}
	memory, holds := "-", "-"
	if h := n.Health; h != nil {
		memory = fmt.Sprintf("%s of %s", sizeOf(h.MemoryUsed), sizeOf(budget))
		var fs []swarm.Fragment
		for _, f := range h.Held {
			fs = append(fs, swarm.Fragment{Model: f.Model, Layers: f.Layers})
		}
		holds = fragmentsOf(fs)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", id, n.Status, wanted, host, heard(n.Heard), memory, holds)
}

func heard(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return time.Since(t).Round(100*time.Millisecond).String() + " ago"
}

// nodeArg names one node.
type nodeArg struct {
	administered
	Node string `arg:"" help:"The node's id."`
}

func (n nodeArg) steer(ctx context.Context, c console, what string, do func(*admin.Client, context.Context, string) error) error {
	if err := control.ValidateNodeName(n.Node); err != nil {
		return &UsageError{err}
	}
	return n.act(ctx, c, what, n.Node, do)
}

type nodePauseCmd struct{ nodeArg }

// Run pauses a node.
func (n *nodePauseCmd) Run(ctx context.Context, c console) error {
	return n.steer(ctx, c, "paused", (*admin.Client).Pause)
}

type nodeResumeCmd struct{ nodeArg }

// Run resumes a node.
func (n *nodeResumeCmd) Run(ctx context.Context, c console) error {
	return n.steer(ctx, c, "resumed", (*admin.Client).Resume)
}

type nodeDrainCmd struct {
	nodeArg
	Now bool `help:"Move the answers that run on it to others, instead of letting them finish."`
}

// Run drains a node.
func (n *nodeDrainCmd) Run(ctx context.Context, c console) error {
	if n.Now {
		return n.steer(ctx, c, "draining, its answers move", (*admin.Client).Evacuate)
	}
	return n.steer(ctx, c, "draining", (*admin.Client).Drain)
}

type nodeRemoveCmd struct {
	nodeArg
	Now bool `help:"At once, whatever it holds."`
}

// Run takes a node out of the swarm.
func (n *nodeRemoveCmd) Run(ctx context.Context, c console) error {
	if n.Now {
		return n.steer(ctx, c, "removed", (*admin.Client).Expel)
	}
	return n.steer(ctx, c, "draining, then removed", (*admin.Client).Remove)
}
