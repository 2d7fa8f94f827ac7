package tokens

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

	"github.com/google/go-cmp/cmp"

	"hecate/internal/demomodel"
)

// ggufWriter puts together metadata for tests.
type ggufWriter struct {
	bytes.Buffer
	keys uint64
}

func (w *ggufWriter) num(v any) { _ = binary.Write(&w.Buffer, binary.LittleEndian, v) }

func (w *ggufWriter) str(s string) {
	w.num(uint64(len(s)))
	w.WriteString(s)
}

func (w *ggufWriter) key(name string, kind uint32) {
	w.keys++
	w.str(name)
	w.num(kind)
}

func (w *ggufWriter) file() []byte {
	var head ggufWriter
	head.WriteString("GGUF")
	head.num(uint32(3))
	head.num(uint64(0))
	head.num(w.keys)
	return append(head.Bytes(), w.Bytes()...)
}

func TestReadSourceReadsEveryKindOfValue(t *testing.T) {
	var w ggufWriter
	w.key("tokenizer.ggml.model", ggufString)
	w.str("llama")
	w.key("qwen3.context_length", ggufUint64)
	w.num(uint64(1 << 40))
	w.key("other.context_length", ggufInt8)
	w.num(int8(5))
	w.key("general.architecture", ggufString)
	w.str("qwen3")
	w.key("nested", ggufArray)
	w.num(ggufArray)
	w.num(uint64(2))
	for range 2 {
		w.num(ggufString)
		w.num(uint64(1))
		w.str("x")
	}
	for kind, size := range ggufSizes {
		w.key("skipped", kind)
		w.Write(make([]byte, size))
	}
	w.key("tokenizer.ggml.tokens", ggufArray)
	w.num(ggufString)
	w.num(uint64(3))
	for _, s := range []string{"<unk>", "<s>", "</s>"} {
		w.str(s)
	}
	w.key("tokenizer.ggml.token_type", ggufArray)
	w.num(ggufInt32)
	w.num(uint64(3))
	w.num([]int32{2, 3, 3})
	w.key("tokenizer.ggml.scores", ggufArray)
	w.num(ggufFloat32)
	w.num(uint64(3))
	w.num([]float32{0, -1, 0.5})
	w.key("tokenizer.ggml.eos_token_id", ggufUint8)
	w.num(uint8(1))
	w.key("tokenizer.ggml.eom_token_id", ggufInt32)
	w.num(int32(-1)) // some files write none so
	w.key("tokenizer.ggml.eos_token_ids", ggufArray)
	w.num(ggufUint32)
	w.num(uint64(1))
	w.num(uint32(2))
	w.key("tokenizer.ggml.add_space_prefix", ggufBool)
	w.num(true)
	got, err := ReadSource(bytes.NewReader(w.file()))
	if err != nil {
		t.Fatal(err)
	}
	want := Source{
		Architecture: "qwen3", ContextLength: 1 << 40, Model: "llama",
		Tokens: []string{"<unk>", "<s>", "</s>"}, Types: []Type{2, 3, 3}, Scores: []float32{0, -1, 0.5},
		Unknown: new(int32(0)), BOS: new(int32(1)), EOS: new(int32(1)), EOSIDs: []int32{2}, AddSpacePrefix: new(true),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Every truncation of the metadata is an error.
func TestReadSourceNoticesEveryTruncation(t *testing.T) {
	var w ggufWriter
	w.key("tokenizer.ggml.model", ggufString)
	w.str("llama")
	w.key("tokenizer.ggml.tokens", ggufArray)
	w.num(ggufString)
	w.num(uint64(2))
	w.str("a")
	w.str("bc")
	w.key("x", ggufArray)
	w.num(ggufUint16)
	w.num(uint64(3))
	w.num([]uint16{1, 2, 3})
	w.key("tokenizer.ggml.add_bos_token", ggufBool)
	w.num(true)
	file := w.file()
	if _, err := ReadSource(bytes.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	for n := range file {
		if _, err := ReadSource(bytes.NewReader(file[:n])); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrNotGGUF) {
			t.Errorf("first %d of %d bytes: error %v", n, len(file), err)
		}
	}
}

func TestReadSourceRefusesHostileMetadata(t *testing.T) {
	for name, tc := range map[string]struct {
		write func(w *ggufWriter)
		want  string
	}{
		"huge string": {func(w *ggufWriter) { w.key("general.name", ggufString); w.num(uint64(math.MaxUint64)) }, "a string of"},
		"huge key":    {func(w *ggufWriter) { w.keys++; w.num(uint64(1 << 40)) }, "metadata key: a string of"},
		"huge array": {func(w *ggufWriter) {
			w.key("tokenizer.ggml.tokens", ggufArray)
			w.num(ggufString)
			w.num(uint64(1 << 60))
		}, "an array of"},
		"huge skipped":     {func(w *ggufWriter) { w.key("x", ggufString); w.num(uint64(math.MaxUint64)) }, "unexpected EOF"},
		"huge skipped run": {func(w *ggufWriter) { w.key("x", ggufArray); w.num(ggufUint64); w.num(uint64(math.MaxUint64)) }, "unexpected EOF"},
		"many strings":     {func(w *ggufWriter) { w.key("x", ggufArray); w.num(ggufString); w.num(uint64(math.MaxUint64)) }, "unexpected EOF"},
		"unknown kind":     {func(w *ggufWriter) { w.key("x", 99) }, "unknown value kind 99"},
		"wrong kind":       {func(w *ggufWriter) { w.key("tokenizer.ggml.model", ggufUint8); w.num(uint8(1)) }, "must be a string"},
		"flag as number":   {func(w *ggufWriter) { w.key("tokenizer.ggml.add_bos_token", ggufUint8); w.num(uint8(1)) }, "must be a bool"},
		"id as text":       {func(w *ggufWriter) { w.key("tokenizer.ggml.bos_token_id", ggufString); w.str("1") }, "must be an integer"},
		"no array":         {func(w *ggufWriter) { w.key("tokenizer.ggml.scores", ggufFloat32); w.num(float32(1)) }, "must be an array"},
		"scores as ints": {func(w *ggufWriter) {
			w.key("tokenizer.ggml.scores", ggufArray)
			w.num(ggufInt32)
			w.num(uint64(1))
			w.num(int32(1))
		}, "must be a float32"},
		"deep arrays": {func(w *ggufWriter) {
			w.key("x", ggufArray)
			for range 10 {
				w.num(ggufArray)
				w.num(uint64(1))
			}
		}, "nested more than"},
	} {
		var w ggufWriter
		tc.write(&w)
		if _, err := ReadSource(bytes.NewReader(w.file())); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
	for name, file := range map[string]string{"empty": "", "text": "hello world, this is no model", "old": "GGUF\x01\x00\x00\x00" + strings.Repeat("\x00", 16), "keys": "GGUF\x03\x00\x00\x00" + strings.Repeat("\xff", 16)} {
		if _, err := ReadSource(strings.NewReader(file)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestOpenSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, demomodel.GGUF(), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := OpenSource(path); err != nil || len(s.Tokens) != 2048 {
		t.Errorf("%d tokens, %v", len(s.Tokens), err)
	}
	if _, err := OpenSource(path + "x"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("missing file: %v", err)
	}
}

// New refuses metadata that contradict themselves, naming what is wrong.
func TestNewRefusesContradictions(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *Source)
		want   string
	}{
		"no tokens":     {func(s *Source) { s.Tokens = nil }, "0 tokens"},
		"no types":      {func(s *Source) { s.Types = nil }, "0 token types for 2048 tokens"},
		"few scores":    {func(s *Source) { s.Scores = s.Scores[:5] }, "5 scores for 2048 tokens"},
		"score NaN":     {func(s *Source) { s.Scores[7] = float32(math.NaN()) }, "score of token 7"},
		"bos beyond":    {func(s *Source) { s.BOS = new(int32(2048)) }, "bos_token_id is 2048"},
		"eos negative":  {func(s *Source) { s.EOSIDs = []int32{-1} }, "eos_token_ids[0] is -1"},
		"odd byte":      {func(s *Source) { s.Tokens[5] = "<0xZZ>" }, `byte token "<0xZZ>"`},
		"long token":    {func(s *Source) { s.Tokens[9] = strings.Repeat("x", maxTokenBytes+1) }, "token 9 has"},
		"bad template":  {func(s *Source) { s.ChatTemplate = "\xff" }, "not UTF-8"},
		"bytes missing": {func(s *Source) { s.Types[6], s.Unknown = TypeNormal, nil }, "byte 0x01"},
	} {
		s := demoSource(t)
		tc.change(&s)
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
	s := bpeSource(t, "qwen2")
	s.Merges = append(s.Merges, "lonely")
	if _, err := New(s); err == nil || !strings.Contains(err.Error(), `"lonely"`) {
		t.Errorf("merge without a space: %v", err)
	}
}
