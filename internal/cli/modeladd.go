package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"hecate/internal/control"
	"hecate/internal/control/admin"
)

type modelAddCmd struct {
	administered
	File string `arg:"" type:"path" help:"GGUF file, or a folder with some."`
	placing
}

// placing is how a model is called and placed.
type placing struct {
	Name        string `help:"The model's id; the file's name without its ending when absent." placeholder:"ID"`
	Copies      int    `help:"Complete copies; the gateway's --copies when absent, one of an expert." placeholder:"N"`
	Expert      bool   `help:"Place it only in what the other models leave, and let it give way first."`
	FallbackFor string `help:"A model of the catalogue that it stands in for, labelled, when that cannot be served." placeholder:"MODEL"`
	Priority    int    `help:"Higher ones get their memory first; among equals, those that are served already." placeholder:"P"`
}

// maxCopies is far above what survives anything.
const maxCopies = 64

// Run adds each file. One that cannot be served is the caller's mistake.
func (m *modelAddCmd) Run(ctx context.Context, c console) error {
	if err := m.placing.check(); err != nil {
		return err
	}
	client, err := m.local(ctx)
	if err != nil {
		return err
	}
	files, err := m.files()
	if err != nil {
		return err
	}
	var added []*control.ModelRecord
	for _, path := range files {
		rec, err := m.add(ctx, c, client, path)
		if err != nil {
			return err
		}
		added = append(added, rec)
		if !m.JSON {
			fmt.Fprintf(c.out, "%s: added, %d layers, %s, %s\n", rec.ID, rec.Spec.Layers, sizeOf(rec.Size), rec.Quantisation)
		}
	}
	if m.JSON {
		return printJSON(c.out, added)
	}
	return nil
}

func (p placing) check() error {
	if p.Copies < 0 || p.Copies > maxCopies {
		return usage("--copies is %d, want 1 to %d", p.Copies, maxCopies)
	}
	return nil
}

// local opens the gateway's administration and makes sure that its store is here.
func (a administered) local(ctx context.Context) (*admin.Client, error) {
	client, err := a.open()
	if err != nil {
		return nil, err
	}
	if _, err := client.Info(ctx); err != nil {
		return nil, err
	}
	if st, err := os.Stat(admin.SocketPath(a.Data)); err != nil || st.Mode().Type() != os.ModeSocket {
		return nil, usage("%s is not the data folder of a gateway on this machine: models are added where the gateway runs", a.Data)
	}
	return client, nil
}

// files are those to add.
func (m *modelAddCmd) files() ([]string, error) {
	st, err := os.Stat(m.File)
	if err != nil {
		return nil, &UsageError{err}
	}
	if !st.IsDir() {
		return []string{m.File}, nil
	}
	found, err := filepath.Glob(filepath.Join(m.File, "*.gguf"))
	switch {
	case err != nil:
		return nil, &UsageError{err}
	case len(found) == 0:
		return nil, usage("there is no .gguf file in %s", m.File)
	case len(found) > 1 && m.Name != "":
		return nil, usage("there are %d .gguf files in %s, and --name names one: name the file", len(found), m.File)
	}
	return found, nil
}

func (m *modelAddCmd) add(ctx context.Context, c console, client *admin.Client, path string) (*control.ModelRecord, error) {
	id, err := m.Name, control.ValidateModelName(m.Name)
	if m.Name == "" {
		id, err = modelID(path)
	}
	if err != nil {
		return nil, &UsageError{err}
	}
	bar := &percent{w: c.err, what: "reading " + path, on: isTerminal(c.err) && !m.JSON}
	return m.placing.put(ctx, client, dataDir(m.Data), path, id, bar)
}

// put takes a file into the store and the catalogue.
func (p placing) put(ctx context.Context, client *admin.Client, dir dataDir, path, id string, bar *percent) (*control.ModelRecord, error) {
	rec, err := describeModel(ctx, dir, path, id, bar.tell)
	bar.end()
	if errors.Is(err, context.Canceled) {
		return nil, err
	}
	if err != nil {
		return nil, &UsageError{err}
	}
	rec.Spec.Copies, rec.Spec.Expert, rec.Spec.FallbackFor, rec.Spec.Priority = p.Copies, p.Expert, p.FallbackFor, p.Priority
	if err := client.PutModel(ctx, rec); err != nil {
		forgetFile(ctx, client, dir, rec.Hash)
		return nil, err
	}
	return rec, nil
}

// forgetFile takes a file out of the store that no model of the catalogue has.
func forgetFile(ctx context.Context, client *admin.Client, dir dataDir, hash string) {
	have, err := client.Models(ctx)
	if err != nil || slices.ContainsFunc(have, func(r *control.ModelRecord) bool { return r.Hash == hash }) {
		return // the file stays where it is: that costs room, not correctness
	}
	if store, err := modelStore(dir); err == nil {
		_ = store.Remove(hash) // likewise
	}
}

type modelRmCmd struct {
	administered
	Model string `arg:"" help:"The model's id, from hecate model ls."`
}

// Run takes a model out of the catalogue, and its file out of the store.
func (m *modelRmCmd) Run(ctx context.Context, c console) error {
	if err := control.ValidateModelName(m.Model); err != nil {
		return &UsageError{err}
	}
	client, err := m.local(ctx)
	if err != nil {
		return err
	}
	have, err := client.Models(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(have, func(r *control.ModelRecord) bool { return r.ID == m.Model })
	if i < 0 {
		return usage("there is no model %q: hecate model ls lists them", m.Model)
	}
	if err := client.RemoveModel(ctx, m.Model); err != nil {
		return err
	}
	forgetFile(ctx, client, dataDir(m.Data), have[i].Hash)
	return m.said(c, "removed; answers that run finish", m.Model)
}
