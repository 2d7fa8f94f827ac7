package tokens

import (
	"fmt"
	"math"
	"strings"
)

// value reads the value of one key into s, or passes over it.
func (g *ggufReader) value(key string, s *Source, numbers map[string]uint64) error {
	kind, err := g.u32()
	if err != nil {
		return err
	}
	if to := s.stringKey(key); to != nil {
		if kind != ggufString {
			return fmt.Errorf("value of kind %d, must be a string", kind)
		}
		*to, err = g.str(maxStringBytes)
		return err
	}
	if to := s.idKey(key); to != nil {
		n, err := g.integer(kind)
		if err == nil && n > math.MaxInt32 { // files write -1 for "none"
			return nil
		}
		*to = new(int32(n))
		return err
	}
	if to := s.flagKey(key); to != nil {
		if kind != ggufBool {
			return fmt.Errorf("value of kind %d, must be a bool", kind)
		}
		b, err := g.bytes(1)
		*to = new(b[0] != 0)
		return err
	}
	for _, name := range []string{".context_length", ".embedding_length", ".pooling_type"} {
		if strings.HasSuffix(key, name) {
			numbers[key], err = g.integer(kind)
			return err
		}
	}
	return g.arrayKey(key, kind, s)
}

func (s *Source) stringKey(key string) *string {
	switch key {
	case "general.architecture":
		return &s.Architecture
	case "general.name":
		return &s.Name
	case "tokenizer.ggml.model":
		return &s.Model
	case "tokenizer.ggml.pre":
		return &s.Pre
	case "tokenizer.chat_template":
		return &s.ChatTemplate
	}
	return nil
}

func (s *Source) idKey(key string) **int32 {
	switch key {
	case "tokenizer.ggml.bos_token_id":
		return &s.BOS
	case "tokenizer.ggml.eos_token_id":
		return &s.EOS
	case "tokenizer.ggml.eot_token_id":
		return &s.EOT
	case "tokenizer.ggml.eom_token_id":
		return &s.EOM
	case "tokenizer.ggml.unknown_token_id":
		return &s.Unknown
	}
	return nil
}

func (s *Source) flagKey(key string) **bool {
	switch key {
	case "tokenizer.ggml.add_bos_token":
		return &s.AddBOS
	case "tokenizer.ggml.add_eos_token":
		return &s.AddEOS
	case "tokenizer.ggml.add_space_prefix":
		return &s.AddSpacePrefix
	}
	return nil
}

// arrayKey reads the arrays of a vocabulary and passes over everything else.
func (g *ggufReader) arrayKey(key string, kind uint32, s *Source) (err error) {
	switch key {
	case "tokenizer.ggml.tokens":
		s.Tokens, err = array(g, kind, maxVocab, g.stringOf(maxTokenBytes))
	case "tokenizer.ggml.merges":
		s.Merges, err = array(g, kind, maxMerges, g.stringOf(2*maxTokenBytes))
	case "tokenizer.ggml.scores":
		s.Scores, err = array(g, kind, maxVocab, g.float)
	case "tokenizer.ggml.token_type":
		s.Types, err = array(g, kind, maxVocab, func(kind uint32) (Type, error) {
			n, err := g.integer(kind)
			return Type(int32(n)), err
		})
	case "tokenizer.ggml.eos_token_ids":
		s.EOSIDs, err = array(g, kind, maxVocab, func(kind uint32) (int32, error) {
			n, err := g.integer(kind)
			return int32(min(n, math.MaxInt32)), err
		})
	default:
		err = g.skip(kind, 0)
	}
	return err
}

// array reads an array of elements that read reads, given their kind.
func array[T any](g *ggufReader, kind uint32, limit uint64, read func(kind uint32) (T, error)) ([]T, error) {
	if kind != ggufArray {
		return nil, fmt.Errorf("value of kind %d, must be an array", kind)
	}
	kind, n, err := g.arrayHead()
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, fmt.Errorf("an array of %d elements, at most %d", n, limit)
	}
	var out []T // grows with what is there, not with what is claimed
	for i := range n {
		v, err := read(kind)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		out = append(out, v)
	}
	return out, nil
}

func (g *ggufReader) stringOf(limit uint64) func(kind uint32) (string, error) {
	return func(kind uint32) (string, error) {
		if kind != ggufString {
			return "", fmt.Errorf("element of kind %d, must be a string", kind)
		}
		return g.str(limit)
	}
}

func (g *ggufReader) float(kind uint32) (float32, error) {
	if kind != ggufFloat32 {
		return 0, fmt.Errorf("element of kind %d, must be a float32", kind)
	}
	v, err := g.u32()
	return math.Float32frombits(v), err
}

// integer reads a whole number of any kind; negative ones come back as huge.
func (g *ggufReader) integer(kind uint32) (uint64, error) {
	size, ok := ggufSizes[kind]
	if !ok || kind == ggufFloat32 || kind == ggufFloat64 || kind == ggufBool {
		return 0, fmt.Errorf("value of kind %d, must be an integer", kind)
	}
	b, err := g.bytes(size)
	if err != nil {
		return 0, err
	}
	var n uint64
	for i := range size {
		n |= uint64(b[i]) << (8 * i)
	}
	signed := kind == ggufInt8 || kind == ggufInt16 || kind == ggufInt32 || kind == ggufInt64
	if signed && size < 8 && n>>(8*size-1) == 1 {
		n |= math.MaxUint64 << (8 * size)
	}
	return n, nil
}
