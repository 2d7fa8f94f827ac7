package tokens

import (
	"fmt"
	"slices"
	"strings"
)

// spaceMark stands for a space in SentencePiece vocabularies.
const spaceMark = "\u2581"

// vocab is what encoding and decoding share.
type vocab struct {
	types []Type
	texts []string // as the file has them
	bytes [][]byte // what each token stands for in text; nil for control tokens

	ends    []int32
	bos     int32 // -1: none
	eos     int32
	unknown int32
	addBOS  bool
	addEOS  bool

	specials *trie // tokens that are found in text before anything is merged
	// guarded marks tokens that only the template may write; shielded those
	// that, besides it, only the assistant may.
	guarded, shielded []bool
}

func newVocab(s *Source) (*vocab, error) {
	v := &vocab{
		types: slices.Clone(s.Types), texts: s.Tokens, ends: s.ends(),
		bos: orNone(s.BOS), eos: orNone(s.EOS), unknown: orNone(s.Unknown),
		guarded: make([]bool, len(s.Tokens)), shielded: make([]bool, len(s.Tokens)),
	}
	for _, id := range v.ends {
		if v.types[id] != TypeControl { // some conversions forgot to mark them
			v.types[id] = TypeControl
		}
	}
	v.flags(s)
	if err := v.decodeAll(s.Model); err != nil {
		return nil, err
	}
	v.guard(s.ChatTemplate)
	v.specials = newTrie(v)
	return v, nil
}

func orNone(id *int32) int32 {
	if id == nil {
		return -1
	}
	return *id
}

// flags resolves what the file leaves open as llama.cpp does.
func (v *vocab) flags(s *Source) {
	v.addBOS = s.Model == modelSentencePiece || preTokenizers[s.Pre].addBOS
	if s.AddBOS != nil {
		v.addBOS = *s.AddBOS
	}
	v.addBOS = v.addBOS && v.bos >= 0
	v.addEOS = s.AddEOS != nil && *s.AddEOS && v.eos >= 0
}

// guard decides which tokens untrusted text must not yield. Control and unknown
// tokens are guarded. Tokens of other kinds that the chat template writes as
// markup, such as <think> or <tool_response>, are shielded: the assistant's own
// words contain them rightly, nobody else's do.
func (v *vocab) guard(template string) {
	for id, t := range v.types {
		switch t {
		case TypeControl, TypeUnknown:
			v.guarded[id] = true
		case TypeUserDefined:
			v.shielded[id] = isMarkup(v.texts[id]) && strings.Contains(template, v.texts[id])
		}
	}
	for _, id := range append(slices.Clone(v.ends), v.bos) {
		if id >= 0 {
			v.guarded[id] = true
		}
	}
}

// isMarkup says that a token looks like a tag.
func isMarkup(s string) bool {
	return len(s) > 2 && (s[0] == '<' && s[len(s)-1] == '>' || s[0] == '[' && s[len(s)-1] == ']')
}

// isSpecial says whether a token is found in text as a whole.
func (v *vocab) isSpecial(id int) bool {
	t := v.types[id]
	return (t == TypeControl || t == TypeUserDefined || t == TypeUnknown) && v.texts[id] != ""
}

// mergeable says whether merging may yield a token. llama.cpp would take any;
// those left out cannot come from merges of a sound vocabulary.
func (v *vocab) mergeable(id int) bool {
	return v.types[id] != TypeByte && !v.guarded[id] && !v.shielded[id] && v.texts[id] != ""
}

func (v *vocab) decodeAll(model string) error {
	v.bytes = make([][]byte, len(v.texts))
	for id, text := range v.texts {
		switch t := v.types[id]; {
		case t == TypeControl || t == TypeUnknown:
		case t == TypeByte:
			b, err := parseByte(text)
			if err != nil {
				return fmt.Errorf("token %d: %w", id, err)
			}
			v.bytes[id] = []byte{b}
		case t == TypeUserDefined:
			v.bytes[id] = []byte(text)
		case model == modelBPE:
			v.bytes[id] = fromByteLevel(text)
		default:
			v.bytes[id] = []byte(strings.ReplaceAll(text, spaceMark, " "))
		}
	}
	return nil
}

// parseByte reads a byte token, such as <0x0A>.
func parseByte(s string) (byte, error) {
	var b byte
	if n, err := fmt.Sscanf(s, "<0x%02X>", &b); n != 1 || err != nil || len(s) != 6 {
		return 0, fmt.Errorf("byte token %q, must look like <0x0A>", s)
	}
	return b, nil
}

// Byte-level BPE writes each byte as a printable character: itself where it is
// one, else the next free one from U+0100 (the table of GPT-2).
var (
	byteToRune [256]rune
	runeToByte = map[rune]byte{}
)

func init() {
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if printable := b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae; !printable {
			r = next
			next++
		}
		byteToRune[b] = r
		runeToByte[r] = byte(b)
	}
}

// fromByteLevel decodes a token's text; characters outside the table, which only
// damaged vocabularies have, stand for themselves.
func fromByteLevel(s string) []byte {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		if b, ok := runeToByte[r]; ok {
			out = append(out, b)
			continue
		}
		out = append(out, string(r)...)
	}
	return out
}
