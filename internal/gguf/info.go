package gguf

import (
	"fmt"
	"slices"
	"strings"
)

// ModelInfo is what a planner and an operator need to know about a model. All
// bytes are as loaded, tensors padded to the kernels' alignment.
type ModelInfo struct {
	File         string
	Architecture string
	Name         string // general.name, may be empty
	Layers       int    // of the whole model
	Width        int    // floats in one row of hidden state
	Heads        int    // attention heads
	KVHeads      int    // heads of keys and values
	KeyDim       int    // size of one key
	ValueDim     int    // size of one value
	FeedForward  int    // inner width; 0 when not the same in all layers
	Vocab        int
	Context      int // trained context length in tokens; 0 when not stated

	// TiedHead: the file has no head of its own, the embedding serves as one.
	// HeadBytes counts it nevertheless, because it is loaded with the last
	// layer.
	TiedHead bool

	// LayerBytes has one entry per layer, shared rope tensors included; 0 for
	// layers that this file, a shard, does not have.
	LayerBytes     []int64
	EmbeddingBytes int64 // belongs to layer 0; 0 when not in this file
	HeadBytes      int64 // belongs to the last layer; 0 when not in this file
	OtherBytes     int64 // tensors that are not part of the text model
	KVBytes        int64 // cache per token and layer: keys and values in F16

	Kinds map[string]int64 // bytes per kind of storage
}

// weightAlignment is what the kernels pad tensors to in memory.
const weightAlignment = 32

// Inspect reads a model file's header and describes the model. It fails with a
// *FormatError when the file is malformed or lacks what every model has.
func Inspect(path string) (ModelInfo, error) {
	f, err := Open(path)
	if err != nil {
		return ModelInfo{}, err
	}
	return f.Info()
}

// Info describes the model of a checked header.
func (f *File) Info() (ModelInfo, error) {
	m := ModelInfo{File: f.Name, Kinds: map[string]int64{}}
	var ok bool
	if m.Architecture, ok = f.Text("general.architecture"); !ok || m.Architecture == "" {
		return m, f.Fault("general.architecture", nil, "missing")
	}
	m.Name, _ = f.Text("general.name")
	if err := m.geometry(f); err != nil {
		return m, err
	}
	if err := m.sizes(f); err != nil {
		return m, err
	}
	return m, m.vocabulary(f)
}

// geometry reads the shape of the network.
func (m *ModelInfo) geometry(f *File) error {
	need := func(dst *int, key string, most uint64) func() error {
		return func() error { return f.number(dst, m.Architecture+"."+key, most) }
	}
	for _, read := range []func() error{
		need(&m.Layers, "block_count", maxBlocks),
		need(&m.Width, "embedding_length", 1<<20),
		need(&m.Heads, "attention.head_count", 1<<16),
	} {
		if err := read(); err != nil {
			return err
		}
	}
	m.KVHeads, m.KeyDim = m.Heads, m.Width/m.Heads
	m.ValueDim = m.KeyDim
	for _, o := range []struct {
		dst  *int
		key  string
		most uint64
	}{
		{&m.KVHeads, "attention.head_count_kv", 1 << 16}, {&m.KeyDim, "attention.key_length", 1 << 16},
		{&m.ValueDim, "attention.value_length", 1 << 16}, {&m.FeedForward, "feed_forward_length", 1 << 24},
		{&m.Context, "context_length", 1 << 31},
	} {
		key := m.Architecture + "." + o.key
		if !f.Has(key) {
			continue
		}
		if err := f.number(o.dst, key, o.most); err != nil {
			return err
		}
	}
	if m.Heads%m.KVHeads != 0 {
		return f.Fault(m.Architecture+".attention.head_count_kv", m.KVHeads, "does not divide the %d heads", m.Heads)
	}
	if m.KeyDim == 0 {
		return f.Fault(m.Architecture+".attention.head_count", m.Heads, "more heads than the width of %d", m.Width)
	}
	m.KVBytes = int64(m.KVHeads) * int64(m.KeyDim+m.ValueDim) * 2
	return nil
}

// number reads a positive whole number; arrays are accepted when all entries
// are equal.
func (f *File) number(dst *int, key string, most uint64) error {
	vs, ok := f.Uints(key)
	if !ok || len(vs) == 0 {
		if !f.Has(key) {
			return f.Fault(key, nil, "missing")
		}
		return f.Fault(key, f.lookup(key), "must be a whole number of at least 1")
	}
	if slices.Min(vs) != slices.Max(vs) {
		return f.Fault(key, fmt.Sprintf("%.60s", fmt.Sprint(vs)), "differs between layers")
	}
	if vs[0] < 1 || vs[0] > most {
		return f.Fault(key, vs[0], "must be from 1 to %d", most)
	}
	*dst = int(vs[0])
	return nil
}

// sizes adds the tensors up.
func (m *ModelInfo) sizes(f *File) error {
	m.LayerBytes = make([]int64, m.Layers)
	var shared int64
	head := false
	for _, t := range f.Tensors {
		n := align(t.Bytes(), weightAlignment)
		m.Kinds[t.Kind.String()] += t.Bytes()
		switch p := Piece(t.Name); {
		case p >= m.Layers:
			return f.Fault("tensor "+t.Name, nil, "the model has only %d layers", m.Layers)
		case p >= 0:
			m.LayerBytes[p] += n
		case p == PieceEmbedding:
			m.EmbeddingBytes += n
		case p == PieceHead:
			m.HeadBytes += n
			head = head || t.Name == "output.weight"
		case p == PieceShared:
			shared += n
		default:
			if strings.HasPrefix(t.Name, "blk.") {
				return f.Fault("tensor "+t.Name, nil, "not a layer's name")
			}
			m.OtherBytes += n
		}
	}
	for i := range m.LayerBytes {
		if m.LayerBytes[i] > 0 {
			m.LayerBytes[i] += shared
		}
	}
	if e, ok := f.Tensor("token_embd.weight"); ok && !head && m.HeadBytes > 0 {
		m.TiedHead = true
		m.HeadBytes += align(e.Bytes(), weightAlignment)
	}
	return nil
}

// vocabulary finds the number of tokens.
func (m *ModelInfo) vocabulary(f *File) error {
	if n, ok := f.Len("tokenizer.ggml.tokens"); ok {
		m.Vocab = int(n)
	}
	for _, name := range []string{"token_embd.weight", "output.weight"} {
		t, ok := f.Tensor(name)
		if !ok {
			continue
		}
		if len(t.Dims) != 2 || t.Dims[0] != int64(m.Width) {
			return f.Fault("tensor "+name, fmt.Sprint(t.Dims), "rows must have the width %d", m.Width)
		}
		m.Vocab = int(t.Dims[1])
	}
	if m.Vocab == 0 {
		return f.Fault("tokenizer.ggml.tokens", nil, "missing, and there is no embedding to tell the size of the vocabulary")
	}
	return nil
}

// Holds says whether the file has everything needed for a range of layers.
func (m ModelInfo) Holds(first, last int) bool {
	if first < 0 || last >= m.Layers || first > last {
		return false
	}
	if first == 0 && m.EmbeddingBytes == 0 || last == m.Layers-1 && m.HeadBytes == 0 {
		return false
	}
	return !slices.Contains(m.LayerBytes[first:last+1], 0)
}

// WeightBytes is the memory for the weights of a range of layers, embedding
// and head included where they belong.
func (m ModelInfo) WeightBytes(first, last int) int64 {
	var n int64
	for _, b := range m.LayerBytes[first : last+1] {
		n += b
	}
	if first == 0 {
		n += m.EmbeddingBytes
	}
	if last == m.Layers-1 {
		n += m.HeadBytes
	}
	return n
}

// CacheBytes is the memory for the cache of so many tokens on so many layers.
func (m ModelInfo) CacheBytes(layers, cells int) int64 {
	return int64(layers) * int64(cells) * m.KVBytes
}
