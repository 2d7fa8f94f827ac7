package bench

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"hecate/internal/demomodel"
	"hecate/internal/engine"
	"hecate/internal/engine/randmodel"
	"hecate/internal/gguf"
	"hecate/internal/tokens"
)

// ErrSlowKernels: a benchmark of slow kernels would measure nothing but them.
var ErrSlowKernels = errors.New("this binary has slow kernels, or none: build it with `make build`, which sets the C flags that make them fast")

// requireFastKernels refuses to measure what nobody should run.
func requireFastKernels() error {
	if !engine.FastKernels {
		return fmt.Errorf("%w (it has: %s)", ErrSlowKernels, engine.KernelName())
	}
	return nil
}

// Names of the models that need no file.
const (
	ModelDemo = "demo" // the one in this binary
	Model135M = "135m" // random weights in the shape of a 135 million parameter model, Q8_0
)

// subject is the model that is measured.
type subject struct {
	name string
	path string  // "": the demo model, which `hecate up` has
	size int     // tokens of the vocabulary
	ends []int32 // tokens that would end an answer
}

// openSubject finds a model by name or file. The random one is written to the
// user's cache folder the first time.
func openSubject(model string) (*subject, error) {
	s := &subject{name: model}
	var source tokens.Source
	var err error
	switch model {
	case ModelDemo:
		file := demomodel.GGUF()
		source, err = tokens.ReadSource(bytes.NewReader(file), int64(len(file)), "the built-in demo model")
	case Model135M:
		if s.path, err = random135M(); err == nil {
			source, err = tokens.OpenSource(s.path)
		}
	default:
		s.name, s.path = filepath.Base(model), model
		source, err = tokens.OpenSource(model)
	}
	if err != nil {
		return nil, fmt.Errorf("open the model %s: %w", model, err)
	}
	t, err := tokens.New(source)
	if err != nil {
		return nil, fmt.Errorf("open the model %s: %w", model, err)
	}
	s.size, s.ends = t.Size(), t.Ends()
	return s, nil
}

// randomSeed makes the random model the same everywhere.
const randomSeed = 1

// random135M gives the path of the random model, writing it if it is not there or
// not whole.
func random135M() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "hecate", "bench")
	path := filepath.Join(dir, fmt.Sprintf("random-135m-seed%d.gguf", randomSeed))
	if _, err := gguf.Inspect(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a folder for the random model: %w", err)
	}
	// Two benchmarks may write it at once: each its own, and the last one stays.
	part := fmt.Sprintf("%s.part%d", path, os.Getpid())
	defer os.Remove(part)
	if err := randmodel.WriteFile(part, randmodel.SmolLM135M(randomSeed)); err != nil {
		return "", err
	}
	return path, os.Rename(part, path)
}

// prompt is n tokens of ordinary text, another one for every seed.
func (s *subject) prompt(n int, seed uint64) []int32 {
	r := rand.New(rand.NewPCG(seed, 0x9E3779B97F4A7C15))
	// Special tokens and single bytes come first in vocabularies.
	first := s.size / 4
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(first + r.IntN(s.size-first))
	}
	return out
}

// endless forbids the tokens that would end an answer, so that each has as many
// tokens as were asked for.
func (s *subject) endless() map[string]float32 {
	bias := map[string]float32{}
	for _, id := range s.ends {
		bias[strconv.Itoa(int(id))] = -100
	}
	return bias
}
