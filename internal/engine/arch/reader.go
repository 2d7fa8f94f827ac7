package arch

import (
	"fmt"
	"slices"
	"strings"

	"hecate/internal/gguf"
)

// reader is what an adapter reads a file with.
type reader struct {
	f    *gguf.File
	spec *Spec
}

func (r *reader) key(name string) string { return r.spec.Info.Architecture + "." + name }

func (r *reader) unsupported(field string, value any, why string) error {
	return &Unsupported{r.f.Name, field, fmt.Sprint(value), why}
}

func (r *reader) broken(field string, value any, why string, args ...any) error {
	return &gguf.FormatError{File: r.f.Name, Field: field, Value: fmt.Sprint(value), Why: fmt.Sprintf(why, args...)}
}

// float reads a number within bounds; missing stands for an absent key, and
// then the key is noted as one to write explicitly.
func (r *reader) float(name string, missing, least, most float64) (float32, error) {
	key := r.key(name)
	if !r.f.Has(key) {
		r.spec.Explicit = append(r.spec.Explicit, gguf.Entry{Key: key, Value: float32(missing)})
		return float32(missing), nil
	}
	v, ok := r.f.Float(key)
	if !ok || !(v >= least && v <= most) {
		return 0, r.broken(key, v, "must be a number from %g to %g", least, most)
	}
	return float32(v), nil
}

// optional is float without writing an absent key into shards: all readers
// take its absence alike.
func (r *reader) optional(name string, missing, least, most float64) (float32, error) {
	if !r.f.Has(r.key(name)) {
		return float32(missing), nil
	}
	return r.float(name, missing, least, most)
}

// either is optional for a number that goes by two names.
func (r *reader) either(name, other string, missing, least, most float64) (float32, error) {
	if !r.f.Has(r.key(name)) {
		name = other
	}
	return r.optional(name, missing, least, most)
}

// refuse fails if a key is there with another value than the harmless one.
func (r *reader) refuse(name string, harmless float64, why string) error {
	key := r.key(name)
	if !r.f.Has(key) {
		return nil
	}
	if v, ok := r.f.Float(key); !ok || v != harmless {
		return r.unsupported(key, v, why)
	}
	return nil
}

// want is a tensor that a piece should have.
type want struct {
	role     Role
	dims     []int
	optional bool
}

// piece collects a piece's tensors and checks their shapes and kinds: the
// kernels abort the process when shapes do not fit. A piece without any of its
// tensors is taken as absent (the file is a shard).
func (r *reader) piece(piece int, prefix string, wants []want) error {
	var found []Tensor
	missing := ""
	for _, w := range wants {
		t, ok := r.f.Tensor(prefix + string(w.role))
		if !ok {
			if !w.optional && missing == "" {
				missing = prefix + string(w.role)
			}
			continue
		}
		if err := r.fits(t, w.dims); err != nil {
			return err
		}
		found = append(found, Tensor{w.role, t})
	}
	if len(found) > 0 && missing != "" {
		return r.broken("tensor "+missing, "absent", "the piece has other tensors, but not this one")
	}
	if len(found) > 0 {
		r.spec.tensors[piece] = found
	}
	return nil
}

func (r *reader) fits(t gguf.Tensor, dims []int) error {
	same := len(t.Dims) == len(dims)
	for i := 0; same && i < len(dims); i++ {
		same = t.Dims[i] == int64(dims[i])
	}
	if !same {
		return r.broken("tensor "+t.Name, t.Dims, "must be %v", dims)
	}
	if len(dims) == 1 && t.Kind != gguf.F32 {
		return r.unsupported("tensor "+t.Name, t.Kind, "vectors must be F32")
	}
	if !slices.Contains(Kinds, t.Kind) {
		return r.unsupported("tensor "+t.Name, t.Kind, fmt.Sprintf("implemented are %v", Kinds))
	}
	return nil
}

// nothingElse refuses tensors of the text model that no piece wanted: they
// would change the arithmetic.
func (r *reader) nothingElse() error {
	known := map[string]bool{}
	for _, ts := range r.spec.tensors {
		for _, t := range ts {
			known[t.Name] = true
		}
	}
	for _, t := range r.f.Tensors {
		if known[t.Name] || gguf.Piece(t.Name) == gguf.PieceOther {
			continue
		}
		if strings.HasPrefix(t.Name, "token_embd.") && t.Name == string(TokenEmbedding) {
			continue
		}
		return r.unsupported("tensor "+t.Name, t.Kind, r.spec.Info.Architecture+" models with such a tensor are not implemented")
	}
	return nil
}
