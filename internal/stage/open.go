package stage

import (
	"encoding/json"
	"fmt"

	"hecate/internal/sampling"
)

// Open asks a node to run layers [First, Last] of a model for one answer.
type Open struct {
	Session string   `json:"session"` // names the answer; the key under which a lost stage's state is kept
	Model   string   `json:"model"`
	First   int      `json:"first"` // first layer, counted from zero
	Last    int      `json:"last"`  // last layer, inclusive
	Cells   int      `json:"cells"` // KV cells (tokens) to reserve for now
	Rescue  bool     `json:"rescue,omitempty"`
	Resume  bool     `json:"resume,omitempty"`  // take up the kept state if there is one
	Sampler *Sampler `json:"sampler,omitempty"` // only for the stage that holds the head, unless States
	States  bool     `json:"states,omitempty"`  // the stage that holds the head draws nothing and gives hidden states, after the model's last norm
	Shadow  bool     `json:"shadow,omitempty"`  // computes ahead for an answer that runs elsewhere; not counted as its work
	Chaos   *Chaos   `json:"chaos,omitempty"`   // obeyed only by a node that was started to allow it
}

// Sampler is what the last stage needs to draw tokens: the parameters and all
// tokens so far. A rescued answer sends what was emitted, and so draws on
// exactly as the lost stage would have.
type Sampler struct {
	Params sampling.Params `json:"params"`
	Prompt int             `json:"prompt"` // how many of Tokens are the prompt
	Tokens []int32         `json:"tokens"` // prompt and emitted tokens, from position 0
}

// Chaos is a failure that a node inflicts on itself just before it computes
// the generated token AtToken (0 is the first).
type Chaos struct {
	AtToken int    `json:"at_token"`
	Prompt  int    `json:"prompt"` // prompt tokens, so that every stage can count generated ones
	Action  string `json:"action"` // kill, stop or drop
}

// Opened is the node's yes.
type Opened struct {
	Held      int    `json:"held"`      // positions whose state it already has (0 unless resumed)
	Width     int    `json:"width"`     // floats per hidden row
	Exactness string `json:"exactness"` // class within which results are bit-identical
	MaxRows   int    `json:"max_rows"`  // largest step it computes in one go

	// Cells is what the stage has reserved: less than was asked for only when it
	// was kept from before and there was no room for more. 0: the node cannot Grow.
	Cells int `json:"cells,omitempty"`
	// Process names the node's process: another name at a later opening says that
	// the one before has ended. Empty: the node does not say.
	Process string `json:"process,omitempty"`
}

// Validate checks what can be checked without knowing the node.
func (o Open) Validate() error {
	switch {
	case o.Session == "" || len(o.Session) > 64:
		return fmt.Errorf("open: session name has %d bytes, want 1 to 64", len(o.Session))
	case o.Model == "" || len(o.Model) > 256:
		return fmt.Errorf("open: model name has %d bytes, want 1 to 256", len(o.Model))
	case o.First < 0 || o.Last < o.First:
		return fmt.Errorf("open: layers [%d, %d] are not a range", o.First, o.Last)
	case o.Cells < 1:
		return fmt.Errorf("open: cells is %d, want at least 1", o.Cells)
	}
	if s := o.Sampler; s != nil {
		if s.Prompt < 1 || s.Prompt > len(s.Tokens) {
			return fmt.Errorf("open: prompt is %d of %d tokens", s.Prompt, len(s.Tokens))
		}
	}
	return nil
}

// Encode gives the message's bytes.
func (o Open) Encode() ([]byte, error)   { return encodeJSON(KindOpen, o) }
func (o Opened) Encode() ([]byte, error) { return encodeJSON(KindOpened, o) }

// DecodeOpen reads and validates an Open.
func DecodeOpen(b []byte) (Open, error) {
	var o Open
	if err := decodeJSON(KindOpen, b, &o); err != nil {
		return Open{}, err
	}
	return o, o.Validate()
}

// DecodeOpened reads the answer to an Open: Opened, or the *Error it carries.
func DecodeOpened(b []byte) (Opened, error) {
	var o Opened
	if KindOf(b) == KindError {
		return o, DecodeError(b)
	}
	err := decodeJSON(KindOpened, b, &o)
	return o, err
}

func encodeJSON(k Kind, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", k, err)
	}
	return append([]byte{byte(k)}, body...), nil
}

func decodeJSON(k Kind, b []byte, v any) error {
	if KindOf(b) != k {
		return fmt.Errorf("want a message %s, got %s", k, KindOf(b))
	}
	if err := json.Unmarshal(b[1:], v); err != nil {
		return fmt.Errorf("decode %s: %w", k, err)
	}
	return nil
}
