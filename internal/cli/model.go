package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"hecate/internal/engine/gguf"
	"hecate/internal/report"
	"hecate/swarm"
)

type modelCmd struct {
	Ls      modelLsCmd      `cmd:"" help:"List the swarm's models."`
	Inspect modelInspectCmd `cmd:"" help:"Read a GGUF file: layers, sizes, kinds of weights."`
}

type modelLsCmd struct {
	where
	JSON bool `help:"Print as JSON."`
}

// Run lists models.
func (m *modelLsCmd) Run(ctx context.Context, c console) error {
	var st report.Status
	if err := m.get(ctx, "/v1/swarm", &st); err != nil {
		return err
	}
	if m.JSON {
		return printJSON(c.out, st.Models)
	}
	t := table(c.out)
	fmt.Fprintln(t, "MODEL\tREADY\tLAYERS\tSIZE\tCONTEXT\tCOPIES\tWHAT")
	for _, x := range st.Models {
		what := "-"
		if x.Demo {
			what = "demo: a toy, it makes mistakes"
		}
		ready := "yes"
		if !x.Ready {
			ready = "no: " + x.Missing
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%d\t%d\t%s\n", x.ID, ready, x.Layers, sizeOf(x.Bytes), x.ContextLength, len(x.Pipelines), what)
	}
	return t.Flush()
}

type modelInspectCmd struct {
	File string `arg:"" type:"existingfile" help:"GGUF file."`
	JSON bool   `help:"Print as JSON."`
}

// Run describes a file; a file that cannot be used is the caller's mistake.
func (m *modelInspectCmd) Run(c console) error {
	info, err := gguf.Inspect(m.File)
	if err != nil {
		return &UsageError{err}
	}
	if m.JSON {
		return printJSON(c.out, info)
	}
	printInfo(c.out, info)
	return nil
}

func printInfo(w io.Writer, i gguf.ModelInfo) {
	t := table(w)
	fmt.Fprintf(t, "architecture\t%s\n", i.Architecture)
	fmt.Fprintf(t, "name\t%s\n", i.Name)
	fmt.Fprintf(t, "layers\t%d of width %d, %d heads, %d for keys and values\n", i.Layers, i.Width, i.Heads, i.KVHeads)
	fmt.Fprintf(t, "vocabulary\t%d tokens\n", i.Vocab)
	fmt.Fprintf(t, "context\t%d tokens\n", i.Context)
	fmt.Fprintf(t, "embedding\t%s\n", sizeOf(i.EmbeddingBytes))
	fmt.Fprintf(t, "head\t%s%s\n", sizeOf(i.HeadBytes), map[bool]string{true: " (the embedding once more)"}[i.TiedHead])
	if len(i.LayerBytes) > 0 {
		fmt.Fprintf(t, "each layer\t%s to %s\n", sizeOf(slices.Min(i.LayerBytes)), sizeOf(slices.Max(i.LayerBytes)))
	}
	fmt.Fprintf(t, "KV cache\t%d bytes per token and layer\n", i.KVBytes)
	for _, k := range slices.Sorted(maps.Keys(i.Kinds)) {
		fmt.Fprintf(t, "stored as %s\t%s\n", k, sizeOf(i.Kinds[k]))
	}
	_ = t.Flush()
	spec := specOf("model", i)
	fmt.Fprintln(w)
	for nodes := 1; nodes <= 4; nodes++ {
		for copies := 1; copies <= min(nodes, 2); copies++ {
			if need, err := (swarm.Planner{}).MinimumNodeMemory(spec, nodes, copies); err == nil {
				fmt.Fprintf(w, "%d nodes, %d copies: %s per node\n", nodes, copies, sizeOf(need))
			}
		}
	}
}
