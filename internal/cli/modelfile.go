package cli

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"hecate/internal/control"
	"hecate/internal/demomodel"
	"hecate/internal/engine"
	"hecate/internal/engine/arch"
	"hecate/internal/gguf"
	"hecate/internal/tokens"
	"hecate/internal/weights"
	"hecate/swarm"
)

// parallelAnswers is how many answers of full length a node reserves KV cells for.
const parallelAnswers = 8

// maxCells bounds that for models with a long context.
const maxCells = 16384

// describeModel takes a GGUF file into the gateway's store and makes a catalogue
// record of it. progress, which may be nil, is told the bytes read.
func describeModel(ctx context.Context, dir dataDir, path, id string, progress func(done, total int64)) (*control.ModelRecord, error) {
	info, err := inspectRunnable(path)
	if err != nil {
		return nil, err
	}
	if err := complete(path, info); err != nil {
		return nil, err
	}
	store, err := modelStore(dir)
	if err != nil {
		return nil, err
	}
	c, err := store.Add(ctx, path, progress)
	if err != nil {
		return nil, err
	}
	rec := &control.ModelRecord{
		ID: id, Hash: c.Hash, Size: c.Size, Source: store.Path(c.Hash), Pieces: c.Pieces, Spec: specOf(id, info),
		ContextLength: info.Context, Architecture: info.Architecture, Quantisation: quantisation(info), Created: time.Now().Truncate(time.Second),
	}
	return rec, rec.Validate()
}

// complete refuses files that are only a part of a model.
func complete(path string, info gguf.ModelInfo) error {
	if info.Context == 0 {
		return fmt.Errorf("%s does not say its context length (%s.context_length)", path, info.Architecture)
	}
	if !info.Holds(0, info.Layers-1) {
		return fmt.Errorf("%s is a shard: it does not have all of its %d layers, embedding and head; add the whole model, nodes fetch their layers of it by themselves", path, info.Layers)
	}
	return nil
}

// modelStore is the gateway's store of models.
func modelStore(dir dataDir) (*weights.Store, error) {
	full, err := filepath.Abs(dir.file("weights"))
	if err != nil {
		return nil, err
	}
	return weights.OpenStore(full)
}

// inspectRunnable reads a GGUF file's header and refuses what no node could
// compute, or no gateway could speak.
func inspectRunnable(path string) (gguf.ModelInfo, error) {
	file, err := gguf.Open(path)
	if err != nil {
		return gguf.ModelInfo{}, err
	}
	spec, err := arch.Describe(file)
	if err != nil {
		return gguf.ModelInfo{}, err
	}
	source, err := tokens.OpenSource(path)
	if err == nil {
		_, err = tokens.New(source)
	}
	if err != nil {
		return gguf.ModelInfo{}, fmt.Errorf("%s: %w", path, err)
	}
	return spec.Info, nil
}

// specOf is what the planner must know of a model: its sizes as the engine loads
// them.
func specOf(id string, info gguf.ModelInfo) swarm.ModelSpec {
	spec := swarm.ModelSpec{
		ID: id, Layers: info.Layers, KVBytes: info.KVBytes,
		EmbeddingBytes: info.EmbeddingBytes + engine.PieceOverhead, HeadBytes: info.HeadBytes + engine.PieceOverhead,
		ContextTokens: min(parallelAnswers*info.Context, max(maxCells, info.Context)),
	}
	for _, b := range info.LayerBytes {
		spec.LayerBytes = append(spec.LayerBytes, b+engine.PieceOverhead)
	}
	return spec
}

// quantisation names the kind that most of the weights have.
func quantisation(info gguf.ModelInfo) string {
	kinds := slices.Sorted(maps.Keys(info.Kinds))
	best := ""
	for _, k := range kinds {
		if best == "" || info.Kinds[k] > info.Kinds[best] {
			best = k
		}
	}
	return best
}

// modelID makes a model's name from its file's.
func modelID(path string) (string, error) {
	id := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if err := control.ValidateModelName(id); err != nil {
		return "", fmt.Errorf("name a model after %s: %w", path, err)
	}
	return id, nil
}

// demoRecord describes the embedded model, unpacked into the data folder.
func demoRecord(ctx context.Context, dir dataDir) (*control.ModelRecord, error) {
	path, err := unpackDemo(dir)
	if err != nil {
		return nil, err
	}
	rec, err := describeModel(ctx, dir, path, demomodel.Name, nil)
	if err != nil {
		return nil, fmt.Errorf("the embedded demo model: %w", err)
	}
	rec.Demo = true
	return rec, nil
}

func unpackDemo(dir dataDir) (string, error) {
	if err := os.MkdirAll(dir.file("models"), 0o700); err != nil {
		return "", err
	}
	path := dir.file("models", demomodel.Name+".gguf")
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, demomodel.GGUF()) {
		return path, nil
	}
	if err := renameio.WriteFile(path, demomodel.GGUF(), 0o600); err != nil {
		return "", fmt.Errorf("unpack the demo model: %w", err)
	}
	return path, nil
}

// catalogue makes rec the only model of the store, keeping its first date.
func (h *host) catalogue(ctx context.Context, rec *control.ModelRecord) error {
	old, err := control.Models(ctx, h.plane.Store())
	if err != nil {
		return fmt.Errorf("read the catalogue: %w", err)
	}
	for _, m := range old {
		if m.ID == rec.ID && m.Hash == rec.Hash {
			rec.Created = m.Created
		}
		if m.ID == rec.ID {
			continue
		}
		if err := control.RemoveModel(ctx, h.plane.Store(), m.ID); err != nil {
			return fmt.Errorf("clear the catalogue: %w", err)
		}
	}
	return control.PutModel(ctx, h.plane.Store(), rec)
}
