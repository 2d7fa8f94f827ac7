package swarm

import (
	"fmt"
	"math"
	"math/bits"
)

// Validate checks a profile: an id, a memory budget of at least 0 bytes, a
// score and a latency that are numbers from 0 up. A score of 0 is unknown and
// counts as 0.01.
func (n NodeProfile) Validate() error {
	switch {
	case n.ID == "":
		return fmt.Errorf("a node has no id: %w", ErrInvalid)
	case n.MemoryBytes < 0:
		return fmt.Errorf("node %q: memory of %d bytes is negative: %w", n.ID, n.MemoryBytes, ErrInvalid)
	case !finite(n.Score):
		return fmt.Errorf("node %q: score %s: %w", n.ID, problemOf(n.Score), ErrInvalid)
	case !finite(n.LatencyMS):
		return fmt.Errorf("node %q: latency_ms %s: %w", n.ID, problemOf(n.LatencyMS), ErrInvalid)
	}
	return nil
}

// Validate checks a model: an id, at least one layer, one size per layer or
// one for all, no negative size, and a total that fits into 63 bits.
func (m ModelSpec) Validate() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("model %q: "+format+": %w", append(append([]any{m.ID}, args...), ErrInvalid)...)
	}
	switch {
	case m.ID == "":
		return fmt.Errorf("a model has no id: %w", ErrInvalid)
	case m.Layers < 1:
		return fail("%d layers", m.Layers)
	case m.Layers > MaxLayer+1:
		return fail("%d layers, more than %d", m.Layers, MaxLayer+1)
	case len(m.LayerBytes) != 1 && len(m.LayerBytes) != m.Layers:
		return fail("layer_bytes has %d entries; want 1 or %d", len(m.LayerBytes), m.Layers)
	case m.Copies < 0:
		return fail("%d copies", m.Copies)
	case m.FallbackFor == m.ID:
		return fail("is its own fallback")
	}
	for _, f := range []struct {
		name  string
		value int64
	}{{"embedding_bytes", m.EmbeddingBytes}, {"head_bytes", m.HeadBytes}, {"kv_bytes", m.KVBytes}, {"context_tokens", int64(m.ContextTokens)}} {
		if f.value < 0 {
			return fail("%s is negative (%d)", f.name, f.value)
		}
	}
	for i, b := range m.LayerBytes {
		if b < 0 {
			return fail("layer_bytes[%d] is negative (%d)", i, b)
		}
	}
	if m.TotalBytes() > maxModelBytes {
		return fail("is larger than %d bytes", maxModelBytes)
	}
	return nil
}

// maxModelBytes keeps sums over copies and nodes far from overflowing.
const maxModelBytes = int64(1) << 52

// LayerWeight is the bytes of weights of one layer: the embedding belongs to
// layer 0, the output norm and head to the last layer. Sums stop at the
// largest int64.
func (m *ModelSpec) LayerWeight(layer int) int64 {
	b := m.LayerBytes[0]
	if len(m.LayerBytes) > 1 {
		b = m.LayerBytes[layer]
	}
	if layer == 0 {
		b = addBytes(b, m.EmbeddingBytes)
	}
	if layer == m.Layers-1 {
		b = addBytes(b, m.HeadBytes)
	}
	return b
}

// LayerNeed is what one held layer takes from its node's budget: its weights
// and the KV cache for the reserved context.
func (m *ModelSpec) LayerNeed(layer int) int64 {
	return addBytes(m.LayerWeight(layer), mulBytes(m.KVBytes, int64(m.ContextTokens)))
}

// RangeNeed is the sum of LayerNeed over a range of layers.
func (m *ModelSpec) RangeNeed(r LayerRange) int64 {
	var sum int64
	for l := r.First; l <= r.Last; l++ {
		sum = addBytes(sum, m.LayerNeed(l))
	}
	return sum
}

// RangeWeight is the sum of LayerWeight over a range of layers: what has to be
// fetched when a node takes the range.
func (m *ModelSpec) RangeWeight(r LayerRange) int64 {
	var sum int64
	for l := r.First; l <= r.Last; l++ {
		sum = addBytes(sum, m.LayerWeight(l))
	}
	return sum
}

// TotalBytes is what one whole copy of the model takes, KV included.
func (m *ModelSpec) TotalBytes() int64 { return m.RangeNeed(LayerRange{0, m.Layers - 1}) }

func addBytes(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func mulBytes(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

func checkProfiles(nodes []NodeProfile) error {
	if len(nodes) == 0 {
		return fmt.Errorf("no node profiles: %w", ErrInvalid)
	}
	seen := make(map[string]bool, len(nodes))
	for i := range nodes {
		if err := nodes[i].Validate(); err != nil {
			return err
		}
		if seen[nodes[i].ID] {
			return fmt.Errorf("node %q is given twice: %w", nodes[i].ID, ErrInvalid)
		}
		seen[nodes[i].ID] = true
	}
	return nil
}

func checkModels(models []ModelSpec) error {
	seen := make(map[string]bool, len(models))
	for i := range models {
		if err := models[i].Validate(); err != nil {
			return err
		}
		if seen[models[i].ID] {
			return fmt.Errorf("model %q is given twice: %w", models[i].ID, ErrInvalid)
		}
		seen[models[i].ID] = true
	}
	return nil
}

// checkFallbacks refuses a fallback for a model that is not among these.
func checkFallbacks(models []ModelSpec) error {
	seen := make(map[string]bool, len(models))
	for i := range models {
		seen[models[i].ID] = true
	}
	for i := range models {
		if f := models[i].FallbackFor; f != "" && !seen[f] {
			return fmt.Errorf("model %q is the fallback for %q, which is not there: %w", models[i].ID, f, ErrInvalid)
		}
	}
	return nil
}
