package cli

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"hecate/internal/control"
	"hecate/internal/weights"
)

type modelPullCmd struct {
	administered
	Model    string `arg:"" help:"The model in the registry: [namespace/]name[:tag]."`
	Registry string `help:"Registry with models as Ollama's have them: https://host." required:"" placeholder:"URL"`
	placing
}

// Run fetches the file beside the gateway's store, and adds it. What came before a
// cut stays there, and the next pull goes on from it.
func (m *modelPullCmd) Run(ctx context.Context, c console) error {
	if err := m.placing.check(); err != nil {
		return err
	}
	ref, err := weights.ParseReference(m.Model)
	if err != nil {
		return &UsageError{err}
	}
	id := m.Name
	if id == "" {
		id = m.Model[strings.LastIndex(m.Model, "/")+1:]
	}
	if err := control.ValidateModelName(id); err != nil {
		return &UsageError{err}
	}
	client, err := m.local(ctx)
	if err != nil {
		return err
	}
	dir := dataDir(m.Data)
	if err := os.MkdirAll(dir.file("pulled"), 0o700); err != nil {
		return err
	}
	bar := &percent{w: c.err, what: "fetching " + m.Model, on: isTerminal(c.err) && !m.JSON}
	puller := &weights.Puller{Registry: m.Registry, Client: patientClient(), Dir: dir.file("pulled"), Progress: bar.tell}
	path, err := puller.Pull(ctx, ref)
	bar.end()
	if err != nil {
		return err
	}
	defer os.Remove(path) // the store has it under its own name, or it is of no use
	rec, err := m.placing.put(ctx, client, dir, path, id, &percent{})
	if err != nil {
		return err
	}
	if m.JSON {
		return printJSON(c.out, rec)
	}
	_, err = fmt.Fprintf(c.out, "%s: added, %d layers, %s, %s\n", rec.ID, rec.Spec.Layers, sizeOf(rec.Size), rec.Quantisation)
	return err
}

// patientClient bounds how long a server may be silent, not how long a file takes.
func patientClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 30 * time.Second,
	}}
}
