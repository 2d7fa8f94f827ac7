package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"hecate/internal/engine/arch"
	"hecate/internal/gguf"
	"hecate/internal/tokens"
	"hecate/swarm"
)

type modelInspectCmd struct {
	File   string   `arg:"" type:"existingfile" help:"GGUF file."`
	Budget []string `help:"Memory of each node, to see what fits where: 8GiB,6GiB,6GiB." placeholder:"SIZE"`
	Copies int      `help:"Complete copies to place on them." default:"1"`
	JSON   bool     `help:"Print as JSON."`
}

// inspection is everything that a file says of itself and that this program makes
// of it.
type inspection struct {
	gguf.ModelInfo
	Metadata map[string]string // small values as text, of arrays the length
	Adapter  []string          `json:",omitempty"` // how it will be computed
	Refused  string            `json:",omitempty"` // why it will not be
	Exact    bool              // a row's result depends on nothing but its history
	Fits     *swarm.Plan       `json:",omitempty"`
}

// Run describes a file; a file that cannot be read is the caller's mistake. One
// that reads well and cannot be computed is described all the same.
func (m *modelInspectCmd) Run(c console) error {
	file, err := gguf.Open(m.File)
	if err != nil {
		return &UsageError{err}
	}
	doc := inspection{Metadata: metadataOf(file)}
	if doc.ModelInfo, err = file.Info(); err != nil {
		return &UsageError{err}
	}
	spec, err := arch.Describe(file)
	if err == nil {
		doc.Adapter, doc.Exact = adapterText(spec), spec.Exact()
		err = speaks(m.File)
	}
	if err != nil {
		doc.Refused = err.Error()
	}
	if doc.Fits, err = m.fit(doc.ModelInfo); err != nil {
		return err
	}
	if m.JSON {
		return printJSON(c.out, doc)
	}
	printInspection(c.out, doc)
	return nil
}

func speaks(path string) error {
	source, err := tokens.OpenSource(path)
	if err == nil {
		_, err = tokens.New(source)
	}
	return err
}

// fit plans the model alone on nodes of the given budgets.
func (m *modelInspectCmd) fit(info gguf.ModelInfo) (*swarm.Plan, error) {
	if len(m.Budget) == 0 {
		return nil, nil
	}
	if m.Copies < 1 || m.Copies > maxCopies {
		return nil, usage("--copies is %d, want 1 to %d", m.Copies, maxCopies)
	}
	var nodes []swarm.NodeProfile
	for i, text := range m.Budget {
		n, err := swarm.ParseBytes(text)
		if err != nil {
			return nil, usage("--budget %s: %w", text, err)
		}
		nodes = append(nodes, swarm.NodeProfile{ID: fmt.Sprintf("node%d", i+1), MemoryBytes: n, Score: 1})
	}
	plan, err := (swarm.Planner{Copies: m.Copies}).Plan(nodes, []swarm.ModelSpec{specOf("model", info)}, nil)
	if err != nil {
		return nil, usage("--budget: %w", err)
	}
	return plan, nil
}

// maxText is the longest metadata value that is shown.
const maxText = 80

func metadataOf(f *gguf.File) map[string]string {
	out := map[string]string{}
	for _, kv := range f.KVs {
		text := "-"
		switch n, isArray := f.Len(kv.Key); {
		case isArray:
			text = fmt.Sprintf("%d values", n)
		default:
			if s, ok := f.Text(kv.Key); ok {
				text = strings.Join(strings.Fields(s), " ")
			} else if v, ok := f.Uint(kv.Key); ok {
				text = fmt.Sprint(v)
			} else if v, ok := f.Float(kv.Key); ok {
				text = fmt.Sprint(v)
			} else if v, ok := f.Flag(kv.Key); ok {
				text = fmt.Sprint(v)
			}
		}
		if len(text) > maxText {
			text = fmt.Sprintf("%s... (%d characters)", text[:maxText], len(text))
		}
		out[kv.Key] = strings.ToValidUTF8(text, "?")
	}
	return out
}

// adapterText says in words how a model is computed.
func adapterText(s *arch.Spec) []string {
	out := []string{fmt.Sprintf("%d heads of %d, %d for keys and values; RMS norms with epsilon %g", s.Info.Heads, s.HeadDim, s.Info.KVHeads, s.Eps)}
	out = append(out, "positions: "+ropeText(s.Rope))
	if s.Window.Size > 0 {
		out = append(out, fmt.Sprintf("all but every %dth layer see the last %d positions only (%s)", s.Window.Every, s.Window.Size, ropeText(s.Window.Rope)))
	}
	if s.GELU {
		out = append(out, "feed-forward network gated by GELU")
	}
	if s.EmbedScale != 0 {
		out = append(out, fmt.Sprintf("embeddings times %.4g", s.EmbedScale))
	}
	if s.SoftCap != 0 {
		out = append(out, fmt.Sprintf("logits bent to stay within %g", s.SoftCap))
	}
	if s.Temperature.Every > 0 {
		out = append(out, fmt.Sprintf("queries grow every %d positions by %g", s.Temperature.Every, s.Temperature.Scale))
	}
	var keys []string
	for _, e := range s.Explicit {
		keys = append(keys, fmt.Sprintf("%s = %v", e.Key, e.Value))
	}
	if len(keys) > 0 {
		out = append(out, "not in the file, and written into shards: "+strings.Join(keys, ", "))
	}
	return out
}

func ropeText(r arch.Rope) string {
	text := fmt.Sprintf("%d dimensions rotate, base %g", r.Dim, r.Base)
	if r.Factors {
		text += ", with frequency factors"
	}
	if r.Scale != 0 && r.Scale != 1 {
		text += fmt.Sprintf(", stretched %.4g times", 1/r.Scale)
	}
	if r.YaRN.Original > 0 {
		text += fmt.Sprintf(" by YaRN from %d positions", r.YaRN.Original)
	}
	return text
}

func printInspection(w io.Writer, d inspection) {
	i := d.ModelInfo
	t := table(w)
	fmt.Fprintf(t, "architecture\t%s\n", i.Architecture)
	fmt.Fprintf(t, "name\t%s\n", orDash(i.Name))
	fmt.Fprintf(t, "layers\t%d of width %d, %d heads, %d for keys and values\n", i.Layers, i.Width, i.Heads, i.KVHeads)
	fmt.Fprintf(t, "vocabulary\t%d tokens\n", i.Vocab)
	fmt.Fprintf(t, "context\t%d tokens\n", i.Context)
	fmt.Fprintf(t, "embedding\t%s\n", presence(i.EmbeddingBytes))
	fmt.Fprintf(t, "head\t%s%s\n", presence(i.HeadBytes), map[bool]string{true: " (the embedding once more)"}[i.TiedHead])
	for _, g := range layerSizes(i.LayerBytes) {
		fmt.Fprintf(t, "layers %s\t%s each\n", g.layers, presence(g.bytes))
	}
	fmt.Fprintf(t, "KV cache\t%d bytes per token and layer\n", i.KVBytes)
	for _, k := range slices.Sorted(maps.Keys(i.Kinds)) {
		fmt.Fprintf(t, "stored as %s\t%s\n", k, sizeOf(i.Kinds[k]))
	}
	if i.OtherBytes > 0 {
		fmt.Fprintf(t, "not used\t%s: no part of the text model\n", sizeOf(i.OtherBytes))
	}
	_ = t.Flush()
	printAdapter(w, d)
	fmt.Fprintln(w, "\nmetadata")
	for _, k := range slices.Sorted(maps.Keys(d.Metadata)) {
		fmt.Fprintf(w, "  %s = %s\n", k, d.Metadata[k])
	}
	if d.Refused == "" {
		printFit(w, d)
	}
}

func printAdapter(w io.Writer, d inspection) {
	if d.Refused != "" {
		fmt.Fprintf(w, "\nrefused: %s\n", d.Refused)
		return
	}
	fmt.Fprintf(w, "\nhow it is computed\n  %s\n", strings.Join(d.Adapter, "\n  "))
	if d.Exact {
		fmt.Fprintln(w, "  exact: however it is split, a text is the same to the last bit within one class of machines")
		return
	}
	fmt.Fprintln(w, "  coherent: weights of floating point; a text may differ in places between ways to split it")
}

func presence(n int64) string {
	if n == 0 {
		return "not in this file"
	}
	return sizeOf(n)
}

// sizeGroup is a run of layers of one size.
type sizeGroup struct {
	layers swarm.LayerRange
	bytes  int64
}

func layerSizes(sizes []int64) (out []sizeGroup) {
	for l, b := range sizes {
		if n := len(out); n > 0 && out[n-1].bytes == b {
			out[n-1].layers.Last = l
			continue
		}
		out = append(out, sizeGroup{swarm.Layers(l, l), b})
	}
	return out
}

func printFit(w io.Writer, d inspection) {
	if slices.Contains(d.LayerBytes, 0) {
		return // a shard: what fits where is a question to the whole model
	}
	fmt.Fprintln(w, "\nwhat it takes")
	spec := specOf("model", d.ModelInfo)
	for nodes := 1; nodes <= 4; nodes++ {
		for copies := 1; copies <= min(nodes, 2); copies++ {
			if need, err := (swarm.Planner{}).MinimumNodeMemory(spec, nodes, copies); err == nil {
				fmt.Fprintf(w, "  %d nodes, %d copies: %s per node\n", nodes, copies, sizeOf(need))
			}
		}
	}
	if d.Fits == nil {
		return
	}
	fmt.Fprintln(w, "\nwhere it fits")
	for _, n := range d.Fits.Nodes {
		var parts []string
		for _, f := range n.Fragments {
			parts = append(parts, "layers "+f.Layers.String()+map[bool]string{true: " (spare)"}[f.Spare])
		}
		fmt.Fprintf(w, "  %s of %s: %s\n", n.Profile.ID, sizeOf(n.Profile.MemoryBytes), orNothing(strings.Join(parts, ", ")))
	}
	for _, u := range d.Fits.Unplaced {
		fmt.Fprintf(w, "  %d copies found no room: %s\n", u.Copies, u.Reason)
	}
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
