package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// small is a valid file of two layers.
func small() ([]Entry, []Item) {
	entries := []Entry{
		{"general.architecture", "llama"},
		{"general.name", "small"},
		{"llama.block_count", uint32(2)},
		{"llama.embedding_length", uint32(32)},
		{"llama.attention.head_count", uint32(4)},
		{"llama.attention.head_count_kv", uint32(2)},
		{"llama.feed_forward_length", []uint32{64, 64}},
		{"llama.context_length", uint64(128)},
		{"tokenizer.ggml.tokens", []string{"a", "b", "c"}},
		{"tokenizer.ggml.scores", []float32{0, -1, -2}},
		{"some.flag", true},
		{"some.int", int64(-5)},
	}
	q8 := func(name string, dims ...int64) Item { return Item{Name: name, Kind: Q8_0, Dims: dims} }
	return entries, []Item{
		q8("token_embd.weight", 32, 3),
		Floats("rope_freqs.weight", []float32{1, 1, 1, 1}, 4),
		q8("blk.0.attn_q.weight", 32, 32),
		q8("blk.1.attn_q.weight", 32, 32),
		Floats("output_norm.weight", make([]float32, 32), 32),
	}
}

func bytesOf(t testing.TB, entries []Entry, items []Item) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, entries, items); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(data []byte) (*File, error) {
	return Read(bytes.NewReader(data), int64(len(data)), "test.gguf")
}

func TestReadsWhatItWrote(t *testing.T) {
	entries, items := small()
	f, err := read(bytesOf(t, entries, items))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.KVs) != len(entries) || len(f.Tensors) != len(items) {
		t.Fatalf("%d entries and %d tensors", len(f.KVs), len(f.Tensors))
	}
	if s, _ := f.Text("general.name"); s != "small" {
		t.Errorf("name %q", s)
	}
	if v, ok := f.Uint("llama.context_length"); !ok || v != 128 {
		t.Errorf("context %v %v", v, ok)
	}
	if _, ok := f.Uint("some.int"); ok {
		t.Error("-5 read as unsigned")
	}
	if v, ok := f.Float("some.int"); !ok || v != -5 {
		t.Errorf("int as number %v %v", v, ok)
	}
	if v, ok := f.Flag("some.flag"); !ok || !v {
		t.Errorf("flag %v %v", v, ok)
	}
	if n, ok := f.Len("tokenizer.ggml.tokens"); !ok || n != 3 {
		t.Errorf("tokens %v %v", n, ok)
	}
	if v, ok := f.Uints("llama.feed_forward_length"); !ok || len(v) != 2 || v[1] != 64 {
		t.Errorf("array %v %v", v, ok)
	}
	m, err := f.Info()
	if err != nil {
		t.Fatal(err)
	}
	q, e := int64(32*34), align(3*34, 32)
	if m.LayerBytes[0] != q+32 || m.EmbeddingBytes != e || m.HeadBytes != 128+e || !m.TiedHead || m.KVBytes != 2*(8+8)*2 {
		t.Errorf("sizes %+v", m)
	}
	if got := m.WeightBytes(0, 1); got != m.LayerBytes[0]+m.LayerBytes[1]+m.EmbeddingBytes+m.HeadBytes {
		t.Errorf("whole model %d", got)
	}
}

// TestReadsArraysOnDemand: strings and long arrays come from the file again.
func TestReadsArraysOnDemand(t *testing.T) {
	long := make([]int32, maxKeptNumbers+1)
	long[maxKeptNumbers] = -7
	data := bytesOf(t, []Entry{
		{"words", []string{"a", "", "ccc"}}, {"scores", []float32{0, -1.5}}, {"long", long}, {"one", uint32(1)},
		{"huge", Raw("\x09\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff")},
	}, nil)
	r := bytes.NewReader(data)
	m, err := ReadMetadata(r, int64(len(data)), "test.gguf")
	if err != nil {
		t.Fatal(err)
	}
	if words, err := m.Strings(r, "words", 3, 3); err != nil || strings.Join(words, "|") != "a||ccc" {
		t.Errorf("words %q, %v", words, err)
	}
	if scores, err := m.Floats32(r, "scores", 2); err != nil || len(scores) != 2 || scores[1] != -1.5 {
		t.Errorf("scores %v, %v", scores, err)
	}
	if ints, err := m.Ints(r, "long", maxArrayLen); err != nil || len(ints) != len(long) || ints[maxKeptNumbers] != -7 {
		t.Errorf("%d ints, %v", len(ints), err)
	}
	if none, err := m.Strings(r, "absent", 3, 3); none != nil || err != nil {
		t.Errorf("absent: %v, %v", none, err)
	}
	for field, read := range map[string]func() error{
		"length of words[2]":     func() error { _, err := m.Strings(r, "words", 3, 2); return err },
		"length of words":        func() error { _, err := m.Strings(r, "words", 2, 3); return err },
		"element type of words":  func() error { _, err := m.Ints(r, "words", 3); return err },
		"element type of long":   func() error { _, err := m.Floats32(r, "long", maxArrayLen); return err },
		"type of one":            func() error { _, err := m.Ints(r, "one", 1); return err },
		"huge[0]":                func() error { _, err := m.Ints(r, "huge", 1); return err },
		"element type of scores": func() error { _, err := m.Ints(r, "scores", 2); return err },
	} {
		var e *FormatError
		if err := read(); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestRefusals: what is malformed is refused, and the error names the field.
func TestRefusals(t *testing.T) {
	le := binary.LittleEndian
	u32 := func(v uint32) []byte { return le.AppendUint32(nil, v) }
	u64 := func(v uint64) []byte { return le.AppendUint64(nil, v) }
	entries, items := small()
	good := bytesOf(t, entries, items)
	patch := func(at int, with ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], with)
		return b
	}
	after := func(text string) int { return bytes.Index(good, []byte(text)) + len(text) }
	with := func(e []Entry, i []Item) []byte { return bytesOf(t, e, i) }
	tensor := func(name string) int { return after(name) } // its dimension count
	for _, c := range []struct {
		name  string
		data  []byte
		field string
	}{
		{"nothing", nil, "magic"},
		{"text", []byte("hello, this is not a model"), "magic"},
		{"version 1", patch(4, u32(1)...), "version"},
		{"version 4", patch(4, u32(4)...), "version"},
		{"big-endian", patch(4, 0, 0, 0, 3), "version"},
		{"tensor count beyond the file", patch(8, u64(1<<16)...), "tensor count"},
		{"tensor count beyond reason", patch(8, u64(1<<60)...), "tensor count"},
		{"metadata count", patch(16, u64(1<<62)...), "metadata count"},
		{"one entry too many", patch(16, u64(uint64(len(entries)+1))...), ""},
		{"key longer than the file", patch(24, u64(1<<40)...), "length of key 0"},
		{"negative key length", patch(24, u64(1<<63)...), "length of key 0"},
		{"unknown value type", patch(after("general.architecture"), u32(99)...), "type of general.architecture"},
		{"string beyond the file", patch(after("general.architecture")+4, u64(1<<20)...), "general.architecture"},
		{"string beyond reason", patch(after("general.architecture")+4, u64(1<<50)...), "length of general.architecture"},
		{"array of arrays", patch(after("tokenizer.ggml.scores")+4, u32(uint32(TypeArray))...), "element type of tokenizer.ggml.scores"},
		{"array beyond the file", patch(after("tokenizer.ggml.scores")+8, u64(1<<23)...), "length of tokenizer.ggml.scores"},
		{"array beyond reason", patch(after("tokenizer.ggml.tokens")+8, u64(1<<61)...), "length of tokenizer.ggml.tokens"},
		{"bool of 2", patch(after("some.flag")+4, 2), "some.flag"},
		{"no dimensions", patch(tensor("blk.0.attn_q.weight"), u32(0)...), "dimensions of tensor blk.0.attn_q.weight"},
		{"five dimensions", patch(tensor("blk.0.attn_q.weight"), u32(5)...), "dimensions of tensor blk.0.attn_q.weight"},
		{"dimension 0", patch(tensor("blk.0.attn_q.weight")+4, u64(0)...), "dimension 0 of tensor blk.0.attn_q.weight"},
		{"product overflows", patch(tensor("blk.0.attn_q.weight")+12, u64(1<<39)...), "dimension 1 of tensor blk.0.attn_q.weight"},
		{"row is no whole block", patch(tensor("blk.0.attn_q.weight")+4, u64(33)...), "tensor blk.0.attn_q.weight"},
		{"unknown kind", patch(tensor("blk.0.attn_q.weight")+20, u32(77)...), "kind of tensor blk.0.attn_q.weight"},
		{"withdrawn kind", patch(tensor("blk.0.attn_q.weight")+20, u32(4)...), "kind of tensor blk.0.attn_q.weight"},
		{"offset not aligned", patch(tensor("blk.0.attn_q.weight")+24, u64(33)...), "offset of tensor blk.0.attn_q.weight"},
		{"offset beyond the file", patch(tensor("blk.0.attn_q.weight")+24, u64(1<<40)...), "offset of tensor blk.0.attn_q.weight"},
		{"negative offset", patch(tensor("blk.0.attn_q.weight")+24, u64(1<<64-32)...), "offset of tensor blk.0.attn_q.weight"},
		{"tensors overlap", patch(tensor("blk.1.attn_q.weight")+24, u64(0)...), "tensor"},
		{"data missing", good[:len(good)-64], "tensor output_norm.weight"},
		{"header cut", good[:200], ""},
		{"key twice", with(append(entries, entries[1]), items), "key general.name"},
		{"tensor twice", with(entries, append(items, items[2])), "tensor blk.0.attn_q.weight"},
		{"name too long for the kernels", with(entries, []Item{Floats(strings.Repeat("x", 64), []float32{1}, 1)}), "length of name of tensor 0"},
		{"alignment 0", with(append(entries, Entry{"general.alignment", uint32(0)}), items), "general.alignment"},
		{"alignment 33", with(append(entries, Entry{"general.alignment", uint32(33)}), items), "general.alignment"},
		{"alignment as text", with(append(entries, Entry{"general.alignment", "32"}), items), "general.alignment"},
	} {
		_, err := read(c.data)
		var e *FormatError
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if e.File != "test.gguf" || !strings.Contains(e.Field, c.field) {
			t.Errorf("%s: names %q, want %q (%v)", c.name, e.Field, c.field, err)
		}
	}
}

// TestModelRefusals: files that are well formed, but no usable model.
func TestModelRefusals(t *testing.T) {
	change := func(key string, value any) []byte {
		entries, items := small()
		for i := range entries {
			if entries[i].Key == key {
				entries[i].Value = value
			}
		}
		return bytesOf(t, entries, items)
	}
	entries, items := small()
	for _, c := range []struct {
		name  string
		data  []byte
		field string
	}{
		{"no architecture", bytesOf(t, entries[1:], items), "general.architecture"},
		{"architecture is a number", change("general.architecture", uint32(3)), "general.architecture"},
		{"no layers", change("llama.block_count", uint32(0)), "llama.block_count"},
		{"too many layers", change("llama.block_count", uint32(1<<30)), "llama.block_count"},
		{"layers as text", change("llama.block_count", "two"), "llama.block_count"},
		{"negative width", change("llama.embedding_length", int32(-32)), "llama.embedding_length"},
		{"another architecture's keys", change("general.architecture", "qwen9"), "qwen9.block_count"},
		{"a layer beyond the count", change("llama.block_count", uint32(1)), "tensor blk.1.attn_q.weight"},
		{"heads do not divide", change("llama.attention.head_count_kv", uint32(3)), "llama.attention.head_count_kv"},
		{"differs by layer", change("llama.feed_forward_length", []uint32{64, 32}), "llama.feed_forward_length"},
		{"embedding of another width", change("llama.embedding_length", uint32(64)), "tensor token_embd.weight"},
		{"layer name with leading zero", bytesOf(t, entries, append(items, Floats("blk.01.x", []float32{1}, 1))), "tensor blk.01.x"},
		{"negative layer", bytesOf(t, entries, append(items, Floats("blk.-1.x", []float32{1}, 1))), "tensor blk.-1.x"},
	} {
		f, err := read(c.data)
		if err == nil {
			_, err = f.Info()
		}
		var e *FormatError
		if !errors.As(err, &e) || e.Field != c.field {
			t.Errorf("%s: %v, want field %s", c.name, err, c.field)
		}
	}
}

func TestShardHasItsLayersOnly(t *testing.T) {
	entries, items := small()
	for i := range items {
		if items[i].Kind == Q8_0 {
			fill := byte(i + 1)
			items[i].Data = func(w io.Writer) error {
				_, err := w.Write(bytes.Repeat([]byte{fill}, int(items[i].bytes())))
				return err
			}
		}
	}
	whole := bytesOf(t, entries, items)
	src, err := read(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		first, last int
		want        []string
	}{
		{0, 0, []string{"token_embd.weight", "rope_freqs.weight", "blk.0.attn_q.weight", "output.none"}},
		{1, 1, []string{"rope_freqs.weight", "blk.1.attn_q.weight", "output_norm.weight", "output.weight"}},
		{0, 1, []string{"token_embd.weight", "rope_freqs.weight", "blk.0.attn_q.weight", "blk.1.attn_q.weight", "output_norm.weight", "output.weight"}},
	} {
		var b bytes.Buffer
		if err := WriteShard(&b, src, bytes.NewReader(whole), c.first, c.last, Entry{"llama.rope.freq_base", float32(10000)}, Entry{"general.name", "other"}); err != nil {
			t.Fatal(err)
		}
		f, err := read(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, x := range f.Tensors {
			names = append(names, x.Name)
		}
		if strings.Join(names, " ") != strings.Join(c.want, " ") {
			t.Errorf("%d..%d: %v, want %v", c.first, c.last, names, c.want)
		}
		if base, _ := f.Float("llama.rope.freq_base"); base != 10000 {
			t.Errorf("base %v", base)
		}
		if name, _ := f.Text("general.name"); name != "small" {
			t.Errorf("name %q: an existing key was replaced", name)
		}
		m, err := f.Info()
		if err != nil || !m.Holds(c.first, c.last) {
			t.Errorf("%d..%d: not held, %v", c.first, c.last, err)
		}
		if x, ok := f.Tensor("output.weight"); ok {
			data, err := io.ReadAll(f.Section(x, bytes.NewReader(b.Bytes())))
			if err != nil || data[0] != 1 {
				t.Errorf("head has %d..., the embedding 1... (%v)", data[0], err)
			}
		}
	}
}

func TestSumsFindAChangedByte(t *testing.T) {
	entries, items := small()
	data := bytesOf(t, entries, items)
	path := filepath.Join(t.TempDir(), "m.gguf")
	sums := func() map[string][32]byte {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Sums(path)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := sums()
	data[len(data)-1] ^= 1
	after := sums()
	for name := range before {
		if changed := before[name] != after[name]; changed != (name == "output_norm.weight") {
			t.Errorf("%s: changed %v", name, changed)
		}
	}
}

func TestHalfPrecision(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		v    float32
		want uint16
	}{
		{0, 0}, {float32(math.Copysign(0, -1)), 0x8000}, {1, 0x3c00}, {-2, 0xc000}, {65504, 0x7bff}, {65520, 0x7c00}, {inf, 0x7c00}, {-inf, 0xfc00},
		{0x1p-14, 0x0400}, {0x1p-24, 0x0001}, {0x1p-25, 0}, {0x1.8p-25, 1}, {0x1p-26, 0}, {0x1.ff8p-15, 0x03ff}, {0x1.ffcp-15, 0x0400},
		{1 + 0x1p-11, 0x3c00}, {1 + 0x1.8p-10, 0x3c02}, {float32(math.NaN()), 0x7e00},
	} {
		if got := toHalf(c.v); got != c.want {
			t.Errorf("%v: %#04x, want %#04x", c.v, got, c.want)
		}
	}
}

func TestQuantiseKeepsValues(t *testing.T) {
	v := make([]float32, 64)
	for i := range v {
		v[i] = float32(i%17) - 8
	}
	for kind, size := range map[Kind]int{F32: 256, F16: 128, Q8_0: 68, Q4_0: 36} {
		b, err := Quantise(nil, kind, v)
		if err != nil || len(b) != size {
			t.Errorf("%s: %d bytes, %v", kind, len(b), err)
		}
	}
	q8, _ := Quantise(nil, Q8_0, v)
	scale := float32(8.0 / 127)
	for i := range 32 {
		if got := float32(int8(q8[2+i])) * scale; math.Abs(float64(got-v[i])) > 0.04 {
			t.Errorf("value %d: %v became %v", i, v[i], got)
		}
	}
	if _, err := Quantise(nil, Q8_0, v[:31]); err == nil {
		t.Error("31 values were quantised")
	}
	if _, err := Quantise(nil, Q6_K, make([]float32, 256)); err == nil {
		t.Error("Q6_K was quantised")
	}
}

// FuzzRead: no input makes the reader panic, take much memory, or return a
// header whose tensors lie outside the file.
func FuzzRead(f *testing.F) {
	entries, items := small()
	good := bytesOf(f, entries, items)
	f.Add(good)
	f.Add(good[:100])
	f.Add([]byte("GGUF\x03\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := read(data)
		if err != nil {
			var e *FormatError
			if !errors.As(err, &e) {
				t.Fatalf("not a FormatError: %v", err)
			}
			return
		}
		r := bytes.NewReader(data)
		m, err := ReadMetadata(r, int64(len(data)), "test.gguf")
		if err != nil || len(m.KVs) != len(file.KVs) {
			t.Fatalf("metadata of a good file: %v", err)
		}
		for _, kv := range m.KVs {
			if kv.Elem != TypeString {
				continue
			}
			if s, err := m.Strings(r, kv.Key, maxArrayLen, maxStringLen); err != nil || len(s) != int(kv.Count) {
				t.Fatalf("%s: %d of %d strings, %v", kv.Key, len(s), kv.Count, err)
			}
		}
		for _, x := range file.Tensors {
			if end := file.DataOffset + x.Offset + x.Bytes(); x.Offset < 0 || x.Bytes() <= 0 || end > int64(len(data)) {
				t.Fatalf("tensor %+v ends at %d of %d", x, end, len(data))
			}
		}
		if m, err := file.Info(); err == nil && m.Holds(0, m.Layers-1) {
			if err := WriteShard(io.Discard, file, bytes.NewReader(data), 0, m.Layers-1); err != nil {
				t.Fatalf("a shard of a good file: %v", err)
			}
		}
	})
}
