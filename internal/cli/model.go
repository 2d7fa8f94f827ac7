package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"hecate/internal/report"
)

type modelCmd struct {
	Add     modelAddCmd     `cmd:"" help:"Put a GGUF file, or all of a folder, into a running gateway's store and the swarm's catalogue."`
	Ls      modelLsCmd      `cmd:"" help:"List the swarm's models: copies, readiness, transfers."`
	Rm      modelRmCmd      `cmd:"" help:"Take a model out; answers that run finish."`
	Pull    modelPullCmd    `cmd:"" help:"Fetch a model from a registry, and add it."`
	Shard   modelShardCmd   `cmd:"" help:"Write a range of layers as a GGUF file of its own."`
	Inspect modelInspectCmd `cmd:"" help:"Read a GGUF file: layers, sizes, kinds of weights, what fits where."`
}

type modelLsCmd struct {
	where
	Received bool `help:"What each node was sent of the weights, by layers and by whom."`
	JSON     bool `help:"Print as JSON."`
}

// listedModel is a model with what is on its way to nodes, and what came.
type listedModel struct {
	report.Model
	Transfers []transfer `json:"transfers,omitempty"`
	Received  []received `json:"received,omitempty"`
}

// received is what a node was sent of a model.
type received struct {
	Node string `json:"node"`
	report.Received
}

// transfer is a range of a model's layers on its way into a node's memory.
type transfer struct {
	Node string `json:"node"`
	report.Transfer
}

// Run lists models.
func (m *modelLsCmd) Run(ctx context.Context, c console) error {
	var st report.Status
	if err := m.get(ctx, "/v1/swarm", &st); err != nil {
		return err
	}
	list := []listedModel{}
	for _, x := range st.Models {
		list = append(list, listedModel{x, transfersOf(st, x.ID), receivedOf(st, x.ID)})
	}
	if m.JSON {
		return printJSON(c.out, list)
	}
	t := table(c.out)
	if m.Received {
		fmt.Fprintln(t, "MODEL\tNODE\tLAYERS\tFROM\tBYTES")
		for _, x := range list {
			for _, r := range x.Received {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\n", x.ID, r.Node, r.Layers, senderOf(r.From), r.Bytes)
			}
		}
		return t.Flush()
	}
	fmt.Fprintln(t, "MODEL\tREADY\tLAYERS\tSIZE\tCONTEXT\tCOPIES\tSENT\tON ITS WAY\tWHAT")
	for _, x := range list {
		fmt.Fprintln(t, modelRow(x))
	}
	return t.Flush()
}

func transfersOf(st report.Status, model string) (out []transfer) {
	for _, n := range st.Nodes {
		for _, l := range n.Loading {
			if n.Alive && l.Model == model {
				out = append(out, transfer{n.ID, l})
			}
		}
	}
	return out
}

func receivedOf(st report.Status, model string) (out []received) {
	for _, n := range st.Nodes {
		for _, r := range n.Received {
			if n.Alive && r.Model == model {
				out = append(out, received{n.ID, r})
			}
		}
	}
	return out
}

// senderOf names who sent weights.
func senderOf(node string) string {
	if node == "" {
		return "a gateway"
	}
	return node
}

func modelRow(x listedModel) string {
	ready := "yes"
	if !x.Ready {
		ready = "no: " + x.Missing
	}
	live := 0
	for _, p := range x.Pipelines {
		if p.Live {
			live++
		}
	}
	var moves []string
	for _, t := range x.Transfers {
		moves = append(moves, t.Node+" "+loadingText(t.Transfer))
	}
	return fmt.Sprintf("%s\t%s\t%d\t%s\t%d\t%d of %d\t%s\t%s\t%s", x.ID, ready, x.Layers, sizeOf(x.Bytes), x.ContextLength, live, len(x.Pipelines),
		sizeOf(x.SentBytes), orDash(strings.Join(moves, ", ")), orDash(kindOf(x.Model)))
}

// loadingText says in a few words how far a range is.
func loadingText(l report.Transfer) string {
	what := fmt.Sprintf("%s[%s]", l.Phase, l.Layers)
	switch {
	case l.Error != "":
		return what + ": " + l.Error
	case l.Total > 0:
		return fmt.Sprintf("%s %d%%", what, 100*l.Done/l.Total)
	}
	return what
}

func kindOf(m report.Model) string {
	var kinds []string
	if m.Demo {
		kinds = append(kinds, "demo: a toy, it makes mistakes")
	}
	if m.Expert {
		kinds = append(kinds, "expert")
	}
	if m.FallbackFor != "" {
		kinds = append(kinds, "stands in for "+m.FallbackFor)
	}
	return strings.Join(kinds, ", ")
}

// printTransfers says what is on its way into nodes' memory.
func printTransfers(w io.Writer, st report.Status) {
	for _, n := range st.Nodes {
		for _, l := range n.Loading {
			if n.Alive {
				fmt.Fprintf(w, "%s, %s: %s\n", n.ID, l.Model, loadingText(l))
			}
		}
	}
}
