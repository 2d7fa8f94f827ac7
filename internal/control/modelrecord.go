package control

import (
	"time"

	"hecate/swarm"
)

// A ModelRecord is a model in the catalogue.
type ModelRecord struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	// Hash is the SHA-256 of the GGUF file (hex, 64 digits): its content's
	// name in every store and cache.
	Hash string `json:"hash"`
	Size int64  `json:"size"` // bytes of the file
	// Source is where the gateway has the file: an absolute path on its
	// machine.
	Source string `json:"source,omitempty"`
	// Pieces are what nodes fetch and keep, each by itself, with the list of
	// every tensor's SHA-256 among them (see internal/weights). A record
	// without pieces is of a model that is read at Source only.
	Pieces []Piece `json:"pieces,omitempty"`
	// Spec is the planner's input.
	Spec swarm.ModelSpec `json:"spec"`
	// ContextLength is the longest context, prompt and answer, that the model
	// was made for, in tokens. What a session may use is Spec.ContextTokens.
	ContextLength int       `json:"context_length"`
	Architecture  string    `json:"architecture,omitempty"` // "llama"
	Quantisation  string    `json:"quantisation,omitempty"` // "Q8_0"
	Demo          bool      `json:"demo,omitempty"`         // the embedded one: for showing, not for use
	Created       time.Time `json:"created"`                // when it was added
}

func (r *ModelRecord) kind() string  { return "model record" }
func (r *ModelRecord) version() *int { return &r.Version }

// Validate lists everything that is wrong with the record.
func (r *ModelRecord) Validate() error {
	var f faults
	f.add(ValidateModelName(r.ID))
	f.check(len(r.Hash) == 64, "model %q: hash of %d digits, want 64", r.ID, len(r.Hash))
	f.check(r.Spec.ID == r.ID, "model %q: spec of %q", r.ID, r.Spec.ID)
	f.check(r.Size > 0, "model %q: size %d", r.ID, r.Size)
	f.check(r.ContextLength > 0, "model %q: context length %d", r.ID, r.ContextLength)
	f.add(validateSpec(r.Spec))
	f.check(len(r.Pieces) <= maxPieces, "model %q: %d pieces, at most %d", r.ID, len(r.Pieces), maxPieces)
	for _, p := range r.Pieces {
		f.add(p.validate())
	}
	return f.join()
}

// maxLayers is ten times that of the deepest published models.
const maxLayers = 1024

func validateSpec(s swarm.ModelSpec) error {
	var f faults
	f.check(s.Layers > 0 && s.Layers <= maxLayers, "model %q: %d layers, want 1 to %d", s.ID, s.Layers, maxLayers)
	f.check(len(s.LayerBytes) == 1 || len(s.LayerBytes) == s.Layers,
		"model %q: %d layer sizes for %d layers, want one, or one each", s.ID, len(s.LayerBytes), s.Layers)
	for i, b := range s.LayerBytes {
		f.check(b > 0, "model %q: layer %d of %d bytes", s.ID, i, b)
	}
	f.check(s.EmbeddingBytes >= 0 && s.HeadBytes >= 0 && s.KVBytes >= 0, "model %q: negative size", s.ID)
	f.check(s.ContextTokens > 0, "model %q: room for %d tokens, want at least 1", s.ID, s.ContextTokens)
	f.check(s.Copies >= 0, "model %q: %d copies", s.ID, s.Copies)
	if s.FallbackFor != "" {
		f.add(ValidateModelName(s.FallbackFor))
	}
	return f.join()
}
