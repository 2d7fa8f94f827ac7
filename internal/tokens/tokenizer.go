package tokens

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"hecate/internal/tokens/jinja"
)

// ErrTooLong is what errors.Is finds when a text has more than MaxTextBytes.
var ErrTooLong = errors.New("text too long")

// Tokenizer turns text into tokens and back for one model. It is immutable and
// safe for concurrent use.
type Tokenizer struct {
	vocab *vocab
	model interface {
		// encode appends the tokens of a stretch of text without special
		// tokens: a whole text, or what stands between two of them.
		encode(text string, out []int32) []int32
	}
	source   Source
	template chatTemplate
}

// New builds a tokenizer. It fails when the metadata contradict themselves and,
// with ErrUnsupported, when the vocabulary is of a kind that is not supported.
// A chat template that cannot be used is no failure: see Template.
func New(s Source) (*Tokenizer, error) {
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("vocabulary: %w", err)
	}
	v, err := newVocab(&s)
	if err != nil {
		return nil, fmt.Errorf("vocabulary: %w", err)
	}
	t := &Tokenizer{vocab: v, source: s}
	if s.Model == modelSentencePiece {
		t.model, err = newSentencePiece(v, &s)
	} else {
		t.model, err = newBytePairs(v, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("vocabulary: %w", err)
	}
	t.template = newChatTemplate(&s)
	return t, nil
}

// Source returns what the tokenizer was made from. It must not be changed.
func (t *Tokenizer) Source() *Source { return &t.source }

// Size returns the number of tokens.
func (t *Tokenizer) Size() int { return len(t.vocab.texts) }

// Ends returns the ids after which an answer is over, ascending.
func (t *Tokenizer) Ends() []int32 { return slices.Clone(t.vocab.ends) }

// IsEnd says whether an answer is over after this token.
func (t *Tokenizer) IsEnd(id int32) bool { return slices.Contains(t.vocab.ends, id) }

// Control finds a control token by its text.
func (t *Tokenizer) Control(text string) (id int32, ok bool) {
	for id, known := range t.vocab.texts {
		if known == text && t.vocab.bytes[id] == nil {
			return int32(id), true
		}
	}
	return 0, false
}

// BOS returns the beginning-of-text token, and whether there is one.
func (t *Tokenizer) BOS() (id int32, ok bool) { return t.vocab.bos, t.vocab.bos >= 0 }

// Encode encodes a raw prompt, whose author may write control tokens: they are
// read as such, and the beginning-of-text token is put first if the model wants
// one, as llama.cpp does.
func (t *Tokenizer) Encode(text string) ([]int32, error) {
	return t.EncodeText(text, true, true)
}

// EncodePlain encodes text in which nothing is a control token, without a
// beginning-of-text token.
func (t *Tokenizer) EncodePlain(text string) ([]int32, error) {
	return t.EncodeText(text, false, false)
}

// EncodeText encodes a text, with the tokens that the model wants before and
// behind one if special, reading control tokens in it if parse.
func (t *Tokenizer) EncodeText(text string, special, parse bool) ([]int32, error) {
	if err := checkLength(text); err != nil {
		return nil, err
	}
	v, valid := t.vocab, strings.ToValidUTF8(text, "\ufffd")
	marked := jinja.Marked(valid, byOutsider)
	if parse {
		marked = jinja.Trusted(valid)
	}
	var out []int32
	if special && v.addBOS {
		out = append(out, v.bos)
	}
	out = t.encode(marked, out)
	if special && v.addEOS {
		out = append(out, v.eos)
	}
	return out, nil
}

func checkLength(text string) error {
	if len(text) > MaxTextBytes {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLong, len(text), MaxTextBytes)
	}
	return nil
}

// encode appends the tokens of valid UTF-8 text.
func (t *Tokenizer) encode(text jinja.Text, out []int32) []int32 {
	out = slices.Grow(out, len(text.S)/3+4)
	from := 0
	for _, f := range t.vocab.find(text) {
		if from < f.start {
			out = t.model.encode(text.S[from:f.start], out)
		}
		out = append(out, f.id)
		from = f.end
	}
	if from < len(text.S) {
		out = t.model.encode(text.S[from:], out)
	}
	return out
}

// valid says whether id is a token.
func (t *Tokenizer) valid(id int32) bool { return id >= 0 && int(id) < len(t.vocab.texts) }

// TokenBytes returns the bytes that a token stands for in an answer: none for
// control tokens, perhaps only a part of a character. They must not be changed.
func (t *Tokenizer) TokenBytes(id int32) []byte {
	if !t.valid(id) {
		return nil
	}
	return t.vocab.bytes[id]
}

// TokenName returns a token in readable form, for log-probabilities and logs:
// its text, or for control tokens their name. Bytes that are not UTF-8 become
// U+FFFD; TokenBytes has them.
func (t *Tokenizer) TokenName(id int32) string {
	switch {
	case !t.valid(id):
		return fmt.Sprintf("<token %d>", id)
	case t.vocab.bytes[id] == nil:
		return t.vocab.texts[id]
	}
	return strings.ToValidUTF8(string(t.vocab.bytes[id]), "\ufffd")
}

// Decode returns the text of tokens; control tokens stand for none. The space
// that SentencePiece vocabularies put in front is taken off again.
func (t *Tokenizer) Decode(ids []int32) string {
	var b strings.Builder
	d := t.NewDetokenizer()
	for _, id := range ids {
		b.WriteString(d.Push(id))
	}
	b.WriteString(d.Flush())
	s := b.String()
	if m, ok := t.model.(*sentencePiece); ok && m.prefixSpace {
		s = strings.TrimPrefix(s, " ")
	}
	return s
}
