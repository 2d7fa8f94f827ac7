package tokens

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Type is what a GGUF says of a token (tokenizer.ggml.token_type).
type Type int32

// The types of tokens.
const (
	TypeNormal      Type = 1
	TypeUnknown     Type = 2
	TypeControl     Type = 3
	TypeUserDefined Type = 4
	TypeUnused      Type = 5
	TypeByte        Type = 6
)

// Source is what a model file says about its text side. ReadSource reads it
// from a GGUF; it can also be put together by hand.
type Source struct {
	Architecture  string  // general.architecture
	Name          string  // general.name
	ContextLength uint64  // <architecture>.context_length, 0 if unknown
	Width         uint64  // <architecture>.embedding_length, 0 if unknown
	Pooling       *uint64 // <architecture>.pooling_type: 0 none, 1 mean, 2 first, 3 last; nil if the file does not say

	Model  string // tokenizer.ggml.model: "llama" (SentencePiece) or "gpt2" (byte-level BPE)
	Pre    string // tokenizer.ggml.pre: how BPE cuts text into words first
	Tokens []string
	Types  []Type
	Scores []float32 // SentencePiece only
	Merges []string  // BPE only: "left right", best first

	// Ids of special tokens; nil where the file names none.
	BOS, EOS, EOT, EOM, Unknown *int32
	EOSIDs                      []int32 // tokenizer.ggml.eos_token_ids: more ends

	// Nil where the file leaves it to the kind of vocabulary.
	AddBOS, AddEOS, AddSpacePrefix *bool

	ChatTemplate string // tokenizer.chat_template, Jinja; "" if the file has none
}

// Vocabulary models that are supported, as tokenizer.ggml.model names them.
const (
	modelSentencePiece = "llama"
	modelBPE           = "gpt2"
)

// ErrUnsupported is what errors.Is finds when a vocabulary is of a kind that is
// not supported; the error names what it is.
var ErrUnsupported = errors.New("unsupported vocabulary")

// validate reports everything that New could stumble over.
func (s *Source) validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	n := len(s.Tokens)
	switch {
	case s.Model != modelSentencePiece && s.Model != modelBPE:
		return fmt.Errorf("%w: tokenizer.ggml.model is %q, supported are %q and %q", ErrUnsupported, s.Model, modelSentencePiece, modelBPE)
	case n == 0 || n > maxVocab:
		return fmt.Errorf("%d tokens, must be 1 to %d", n, maxVocab)
	}
	if len(s.Types) != n {
		fault("%d token types for %d tokens", len(s.Types), n)
	}
	if s.Model == modelSentencePiece && len(s.Scores) != n {
		fault("%d scores for %d tokens", len(s.Scores), n)
	}
	if len(s.Merges) > maxMerges {
		fault("%d merges, at most %d", len(s.Merges), maxMerges)
	}
	for i, t := range s.Tokens {
		if len(t) > maxTokenBytes {
			fault("token %d has %d bytes, at most %d", i, len(t), maxTokenBytes)
			break
		}
	}
	for i, sc := range s.Scores {
		if sc != sc {
			fault("score of token %d is not a number", i)
			break
		}
	}
	for name, id := range s.ids() {
		if id < 0 || int(id) >= n {
			fault("%s is %d, the vocabulary has %d tokens", name, id, n)
		}
	}
	if !utf8.ValidString(s.ChatTemplate) {
		fault("the chat template is not UTF-8")
	}
	return errors.Join(errs...)
}

// ids lists the special ids that are given, under their keys' names.
func (s *Source) ids() map[string]int32 {
	out := map[string]int32{}
	for name, id := range map[string]*int32{"bos_token_id": s.BOS, "eos_token_id": s.EOS, "eot_token_id": s.EOT, "eom_token_id": s.EOM, "unknown_token_id": s.Unknown} {
		if id != nil {
			out[name] = *id
		}
	}
	for i, id := range s.EOSIDs {
		out[fmt.Sprintf("eos_token_ids[%d]", i)] = id
	}
	return out
}

// endTexts are tokens that end a turn wherever they occur, as llama.cpp has it,
// whether or not the file lists them as ends or marks them as control tokens.
var endTexts = []string{
	"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>",
	"<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<end_of_utterance>", "</s>",
}

// ends returns the ids after which an answer is over, ascending.
func (s *Source) ends() []int32 {
	var out []int32
	for _, id := range []*int32{s.EOS, s.EOT, s.EOM} {
		if id != nil {
			out = append(out, *id)
		}
	}
	out = append(out, s.EOSIDs...)
	for i, t := range s.Tokens {
		if slices.Contains(endTexts, t) {
			out = append(out, int32(i))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
