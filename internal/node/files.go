package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/google/renameio/v2"

	"hecate/internal/control"
	"hecate/internal/demomodel"
	"hecate/internal/engine"
)

// localFiles finds models on this machine: where the catalogue says they are, or
// inside this program.
type localFiles struct {
	dir   string
	store atomic.Pointer[control.Store] // nil before the node was attached
}

// use takes the store of the newest attachment.
func (l *localFiles) use(s control.Store) { l.store.Store(&s) }

func (l *localFiles) Path(ctx context.Context, model, hash string, _ engine.Range) (string, error) {
	store := l.store.Load()
	if store == nil {
		return "", errors.New("the control plane was not reached yet")
	}
	entry, err := (*store).Get(ctx, control.BucketModels, model)
	if err != nil {
		return "", fmt.Errorf("look up model %s: %w", model, err)
	}
	rec := &control.ModelRecord{}
	if err := control.Decode(entry.Value, rec); err != nil {
		return "", err
	}
	if rec.Hash != hash {
		return "", fmt.Errorf("model %s: the plan speaks of content %.12s, the catalogue of %.12s", model, hash, rec.Hash)
	}
	return l.find(rec)
}

// find takes the file where the catalogue says that it is; that may be a place
// on the gateway's machine only.
func (l *localFiles) find(rec *control.ModelRecord) (string, error) {
	if rec.Source != "" {
		if _, err := os.Stat(rec.Source); err == nil || !rec.Demo {
			return rec.Source, nil
		}
	}
	return demoFile(l.dir)
}

// demoFile unpacks the embedded model.
func demoFile(dir string) (string, error) {
	path := filepath.Join(dir, demomodel.Name+".gguf")
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(demomodel.GGUF())) {
		return path, nil
	}
	if err := renameio.WriteFile(path, demomodel.GGUF(), 0o600); err != nil {
		return "", fmt.Errorf("unpack the demo model: %w", err)
	}
	return path, nil
}
