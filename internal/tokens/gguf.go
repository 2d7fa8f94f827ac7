package tokens

import (
	"fmt"
	"io"
	"math"
	"os"

	"hecate/internal/gguf"
)

// OpenSource reads the text side of a GGUF file.
func OpenSource(path string) (Source, error) {
	f, err := os.Open(path)
	if err != nil {
		return Source{}, fmt.Errorf("read vocabulary: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return Source{}, fmt.Errorf("read vocabulary: %w", err)
	}
	return ReadSource(f, st.Size(), path)
}

// ReadSource reads the text side of a GGUF of size bytes. Only the metadata are
// read, so a file without tensors will do. Input may be hostile: lengths are
// bounded before memory is taken, and errors, of type *gguf.FormatError, say
// what is wrong with which field of the file called name.
func ReadSource(r io.ReaderAt, size int64, name string) (Source, error) {
	m, err := gguf.ReadMetadata(r, size, name)
	if err != nil {
		return Source{}, err
	}
	k := keys{m: m}
	s := Source{
		Architecture: k.text("general.architecture"),
		Name:         k.text("general.name"),

		Model:   k.text("tokenizer.ggml.model"),
		Pre:     k.text("tokenizer.ggml.pre"),
		BOS:     k.id("tokenizer.ggml.bos_token_id"),
		EOS:     k.id("tokenizer.ggml.eos_token_id"),
		EOT:     k.id("tokenizer.ggml.eot_token_id"),
		EOM:     k.id("tokenizer.ggml.eom_token_id"),
		Unknown: k.id("tokenizer.ggml.unknown_token_id"),

		AddBOS:         k.flag("tokenizer.ggml.add_bos_token"),
		AddEOS:         k.flag("tokenizer.ggml.add_eos_token"),
		AddSpacePrefix: k.flag("tokenizer.ggml.add_space_prefix"),

		ChatTemplate: k.text("tokenizer.chat_template"),
	}
	if n := k.number(s.Architecture + ".context_length"); n != nil {
		s.ContextLength = *n
	}
	if n := k.number(s.Architecture + ".embedding_length"); n != nil {
		s.Width = *n
	}
	s.Pooling = k.number(s.Architecture + ".pooling_type")
	if k.err != nil {
		return Source{}, k.err
	}
	if err := s.readArrays(m, r); err != nil {
		return Source{}, err
	}
	s.defaultIDs()
	return s, nil
}

// readArrays reads the arrays of a vocabulary.
func (s *Source) readArrays(m *gguf.Metadata, r io.ReaderAt) (err error) {
	if s.Tokens, err = m.Strings(r, "tokenizer.ggml.tokens", maxVocab, maxTokenBytes); err != nil {
		return err
	}
	if s.Merges, err = m.Strings(r, "tokenizer.ggml.merges", maxMerges, 2*maxTokenBytes); err != nil {
		return err
	}
	if s.Scores, err = m.Floats32(r, "tokenizer.ggml.scores", maxVocab); err != nil {
		return err
	}
	types, err := m.Ints(r, "tokenizer.ggml.token_type", maxVocab)
	if err != nil {
		return err
	}
	for _, t := range types {
		s.Types = append(s.Types, Type(narrow(t)))
	}
	ends, err := m.Ints(r, "tokenizer.ggml.eos_token_ids", maxVocab)
	if err != nil {
		return err
	}
	for _, id := range ends {
		s.EOSIDs = append(s.EOSIDs, narrow(id))
	}
	return nil
}

// narrow keeps what no token can have out of range, instead of wrapping it.
func narrow(n int64) int32 { return int32(max(math.MinInt32, min(n, math.MaxInt32))) }

// defaultIDs fills in what llama.cpp assumes of SentencePiece vocabularies.
func (s *Source) defaultIDs() {
	if s.Model != modelSentencePiece || len(s.Tokens) < 3 {
		return
	}
	for id, at := range []**int32{&s.Unknown, &s.BOS, &s.EOS} {
		if *at == nil {
			*at = new(int32(id))
		}
	}
}

// keys reads single values; what a file does not have is nil or "". It keeps
// the first thing that is wrong.
type keys struct {
	m   *gguf.Metadata
	err error
}

// wrong notes that a value is of another type than it must be.
func (k *keys) wrong(key, must string) {
	if kv, _ := k.m.KV(key); k.err == nil {
		k.err = k.m.Fault("type of "+key, kv.Type, "must be %s", must)
	}
}

func (k *keys) text(key string) string {
	v, ok := k.m.Text(key)
	if !ok && k.m.Has(key) {
		k.wrong(key, "a string")
	}
	return v
}

func (k *keys) flag(key string) *bool {
	v, ok := k.m.Flag(key)
	switch {
	case ok:
		return &v
	case k.m.Has(key):
		k.wrong(key, "a bool")
	}
	return nil
}

func (k *keys) number(key string) *uint64 {
	v, ok := k.m.Uint(key)
	switch {
	case ok:
		return &v
	case k.m.Has(key):
		k.wrong(key, "a whole number of at least 0")
	}
	return nil
}

// id reads a token's number. Some files write -1 for none, and some of those
// as a number without a sign.
func (k *keys) id(key string) *int32 {
	kv, ok := k.m.KV(key)
	if !ok {
		return nil
	}
	if !kv.Type.Whole() {
		k.wrong(key, "a whole number")
		return nil
	}
	if v, ok := k.m.Uint(key); ok && v <= math.MaxInt32 {
		return new(int32(v))
	}
	return nil
}
