package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
)

// MaxInputs is how many texts one request may embed, as OpenAI allows.
const MaxInputs = 2048

// EmbeddingRequest is the body of POST /v1/embeddings.
type EmbeddingRequest struct {
	Model          string `json:"model"`
	Input          Inputs `json:"input"`
	EncodingFormat string `json:"encoding_format"`
	Dimensions     *int   `json:"dimensions"`
	User           string `json:"user"`
}

// Inputs are texts or lists of token ids.
type Inputs struct {
	Texts  []string
	Tokens [][]int32 // when given as ids; Texts is empty then
}

// Len is how many there are.
func (in Inputs) Len() int { return max(len(in.Texts), len(in.Tokens)) }

// UnmarshalJSON takes a string, [string...], [id...] or [[id...]...].
func (in *Inputs) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	if oneOrMany(b, &in.Texts, "input") == nil {
		return nil
	}
	in.Texts = nil
	var ids []int32
	if json.Unmarshal(b, &ids) == nil {
		in.Tokens = [][]int32{ids}
		return nil
	}
	if json.Unmarshal(b, &in.Tokens) == nil {
		return nil
	}
	return BadRequest("input", "invalid_type", "'input' must be a string, an array of strings, an array of token ids, or several of those.")
}

// DecodeEmbedding reads and checks a request for embeddings.
func DecodeEmbedding(body []byte) (*EmbeddingRequest, *Error) {
	r := &EmbeddingRequest{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, decodeFault(err)
	}
	switch n := r.Input.Len(); {
	case r.Model == "":
		return nil, BadRequest("model", "missing_required_parameter", "'model' is missing.")
	case n == 0:
		return nil, BadRequest("input", "missing_required_parameter", "'input' must hold at least one text.")
	case n > MaxInputs:
		return nil, BadRequest("input", "invalid_value", "'input' holds %d texts, at most %d are taken.", n, MaxInputs)
	}
	switch r.EncodingFormat {
	case "", "float", "base64":
	default:
		return nil, BadRequest("encoding_format", "invalid_value", "'encoding_format' is %q, want float or base64.", r.EncodingFormat)
	}
	return r, atLeastOne("dimensions", r.Dimensions)
}

// EmbeddingList is the answer.
type EmbeddingList struct {
	Object string          `json:"object"` // list
	Data   []Embedding     `json:"data"`
	Model  string          `json:"model"`
	Usage  EmbeddingUsage  `json:"usage"`
	Hecate EmbeddingDetail `json:"hecate"`
}

// Embedding is one text's vector.
type Embedding struct {
	Object string `json:"object"` // embedding
	Index  int    `json:"index"`
	Vector any    `json:"embedding"` // []float32, or text in base64
}

// EmbeddingUsage counts tokens.
type EmbeddingUsage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}

// EmbeddingDetail is what we add.
type EmbeddingDetail struct {
	Rescues  int    `json:"rescues"`
	Route    string `json:"route,omitempty"`
	Pooling  string `json:"pooling"`  // mean or last
	Declared bool   `json:"declared"` // the model's file says so: it was made for embeddings
}

// Encode words a vector as the request wants it: base64 is of little-endian
// float32.
func (r *EmbeddingRequest) Encode(v []float32) any {
	if r.EncodingFormat != "base64" {
		return v
	}
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}
