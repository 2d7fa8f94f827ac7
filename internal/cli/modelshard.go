package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"

	"hecate/internal/engine/arch"
	"hecate/internal/gguf"
	"hecate/swarm"
)

type modelShardCmd struct {
	File   string `arg:"" type:"existingfile" help:"GGUF file."`
	Layers string `help:"First and last layer, from 0: 0-11." required:"" placeholder:"A-B"`
	Out    string `short:"o" help:"File to write." required:"" type:"path" placeholder:"FILE"`
	JSON   bool   `help:"Print as JSON."`
}

// Run writes the shard; it appears whole or not at all.
func (m *modelShardCmd) Run(c console) error {
	r, err := parseLayers(m.Layers)
	if err != nil {
		return &UsageError{err}
	}
	if same, err := sameFile(m.File, m.Out); err != nil || same {
		return usage("-o %s is the file itself", m.Out)
	}
	if err := writeShard(m.File, m.Out, r); err != nil {
		return err
	}
	info, err := gguf.Inspect(m.Out)
	if err != nil {
		return fmt.Errorf("read what was written: %w", err)
	}
	st, err := os.Stat(m.Out)
	if err != nil {
		return err
	}
	if m.JSON {
		return printJSON(c.out, map[string]any{"file": m.Out, "layers": r, "of": info.Layers, "bytes": st.Size()})
	}
	_, err = fmt.Fprintf(c.out, "%s: layers %s of %d, %s\n", m.Out, r, info.Layers, sizeOf(st.Size()))
	return err
}

func parseLayers(text string) (swarm.LayerRange, error) {
	a, b, two := strings.Cut(text, "-")
	if !two {
		b = a
	}
	first, err1 := strconv.Atoi(a)
	last, err2 := strconv.Atoi(b)
	r := swarm.Layers(first, last)
	if err1 != nil || err2 != nil || !r.Valid() {
		return r, fmt.Errorf("--layers %q is no range of layers, want first-last such as 0-11", text)
	}
	return r, nil
}

func sameFile(a, b string) (bool, error) {
	x, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y), nil
}

// writeShard cuts a range of layers out of a file that this program can compute:
// what it cannot, it would not know how to cut.
func writeShard(path, out string, r swarm.LayerRange) error {
	file, err := gguf.Open(path)
	if err != nil {
		return &UsageError{err}
	}
	spec, err := arch.Describe(file)
	if err != nil {
		return &UsageError{err}
	}
	if r.Last >= spec.Info.Layers {
		return usage("--layers %s: %s has layers 0 to %d", r, path, spec.Info.Layers-1)
	}
	data, err := os.Open(path)
	if err != nil {
		return err
	}
	defer data.Close()
	pending, err := renameio.NewPendingFile(out, renameio.WithTempDir(filepath.Dir(out)), renameio.WithPermissions(0o600))
	if err != nil {
		return fmt.Errorf("write %s: %w", out, err)
	}
	defer func() { _ = pending.Cleanup() }() // nothing is left to clean up when all went well
	if err := gguf.WriteShard(pending, file, data, r.First, r.Last, spec.Explicit...); err != nil {
		return fmt.Errorf("write %s: %w", out, err)
	}
	if err := pending.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("write %s: %w", out, err)
	}
	return nil
}
