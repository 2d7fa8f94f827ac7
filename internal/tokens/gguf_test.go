package tokens

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hecate/internal/demomodel"
	"hecate/internal/gguf"
)

// metadata is a file without tensors.
func metadata(t testing.TB, entries ...gguf.Entry) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := gguf.Write(&b, entries, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// raw is a value of a type that gguf.Write does not write.
func raw(t gguf.ValueType, value any) gguf.Raw {
	b := binary.LittleEndian.AppendUint32(nil, uint32(t))
	b, err := binary.Append(b, binary.LittleEndian, value)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}

func readSource(file []byte) (Source, error) {
	return ReadSource(bytes.NewReader(file), int64(len(file)), "test.gguf")
}

func TestReadSourceReadsEveryKindOfValue(t *testing.T) {
	got, err := readSource(metadata(t,
		gguf.Entry{Key: "tokenizer.ggml.model", Value: "llama"},
		gguf.Entry{Key: "qwen3.context_length", Value: uint64(1 << 40)},
		gguf.Entry{Key: "other.context_length", Value: raw(gguf.TypeInt8, int8(-5))},
		gguf.Entry{Key: "general.architecture", Value: "qwen3"},
		gguf.Entry{Key: "passed.over", Value: []string{"x", "y"}},
		gguf.Entry{Key: "tokenizer.ggml.tokens", Value: []string{"<unk>", "<s>", "</s>"}},
		gguf.Entry{Key: "tokenizer.ggml.token_type", Value: []int32{2, 3, 3}},
		gguf.Entry{Key: "tokenizer.ggml.scores", Value: []float32{0, -1, 0.5}},
		gguf.Entry{Key: "tokenizer.ggml.eos_token_id", Value: uint8(1)},
		gguf.Entry{Key: "tokenizer.ggml.eom_token_id", Value: int32(-1)}, // some files write none so
		gguf.Entry{Key: "tokenizer.ggml.eot_token_id", Value: uint32(math.MaxUint32)},
		gguf.Entry{Key: "tokenizer.ggml.eos_token_ids", Value: []uint32{2}},
		gguf.Entry{Key: "tokenizer.ggml.add_space_prefix", Value: true},
	))
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
	file := metadata(t,
		gguf.Entry{Key: "tokenizer.ggml.model", Value: "llama"},
		gguf.Entry{Key: "tokenizer.ggml.tokens", Value: []string{"a", "bc"}},
		gguf.Entry{Key: "x", Value: []uint32{1, 2, 3}},
		gguf.Entry{Key: "tokenizer.ggml.add_bos_token", Value: raw(gguf.TypeBool, true)},
	)
	end := bytes.Index(file, []byte("add_bos_token")) + len("add_bos_token") + 4 + 1
	if _, err := readSource(file[:end]); err != nil {
		t.Fatal(err)
	}
	for n := range end {
		var fault *gguf.FormatError
		if _, err := readSource(file[:n]); !errors.As(err, &fault) {
			t.Errorf("first %d of %d bytes: error %v", n, end, err)
		}
	}
}

// What the text side needs and cannot be is refused by the field's name.
func TestReadSourceRefusesHostileMetadata(t *testing.T) {
	for _, tc := range []struct {
		key   string
		value any
		field string
		why   string
	}{
		{"tokenizer.ggml.model", uint8(1), "type of ", "uint8: must be a string"},
		{"tokenizer.ggml.add_bos_token", uint8(1), "type of ", "must be a bool"},
		{"tokenizer.ggml.bos_token_id", "1", "type of ", "string: must be a whole number"},
		{"tokenizer.ggml.bos_token_id", float32(1), "type of ", "must be a whole number"},
		{".context_length", int32(-1), "type of ", "must be a whole number of at least 0"},
		{"tokenizer.ggml.scores", float32(1), "type of ", "must be an array of float32 numbers"},
		{"tokenizer.ggml.scores", []int32{1}, "element type of ", "int32: must be an array of float32 numbers"},
		{"tokenizer.ggml.tokens", []int32{1}, "element type of ", "must be an array of strings"},
		{"tokenizer.ggml.token_type", []string{"1"}, "element type of ", "must be an array of whole numbers"},
		{"tokenizer.ggml.tokens", []string{"a", strings.Repeat("x", maxTokenBytes+1)}, "length of ", "[1] is 4097: more than the limit of 4096"},
		{"tokenizer.ggml.token_type", make([]int32, maxVocab+1), "length of ", "1048577: more than the limit of 1048576"},
	} {
		_, err := readSource(metadata(t, gguf.Entry{Key: tc.key, Value: tc.value}))
		if err == nil || !strings.HasPrefix(err.Error(), "gguf: test.gguf: "+tc.field+tc.key) || !strings.HasSuffix(err.Error(), tc.why) {
			t.Errorf("%s = %T: %v", tc.key, tc.value, err)
		}
	}
	for name, file := range map[string]string{"empty": "", "text": "hello world, this is no model", "old": "GGUF\x01\x00\x00\x00" + strings.Repeat("\x00", 16), "keys": "GGUF\x03\x00\x00\x00" + strings.Repeat("\xff", 16)} {
		if _, err := readSource([]byte(file)); err == nil {
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
