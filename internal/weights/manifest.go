package weights

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"hecate/internal/control"
)

// A Manifest says which bytes of a model's file each piece is made of.
type Manifest struct {
	Version int   `json:"version"`
	Size    int64 `json:"size"`   // of the file, bytes
	Layers  int   `json:"layers"` // of the model
	Tied    bool  `json:"tied"`   // the embedding is the head, too
	// Spans in the file's order: the header, then the tensors.
	Spans []Span `json:"spans"`
}

// A Span is a run of bytes with a hash of its own: a tensor, or the header.
type Span struct {
	Name   string `json:"name"` // the tensor's
	Piece  string `json:"piece"`
	Offset int64  `json:"offset"` // in the file
	Bytes  int64  `json:"bytes"`
	Sum    string `json:"sha256"`
}

const manifestVersion = 1

// decodeManifest reads and checks a manifest.
func decodeManifest(data []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("manifest of a model: %w", err)
	}
	return m, m.validate()
}

func (m *Manifest) validate() error {
	if m.Version != manifestVersion {
		return fmt.Errorf("manifest of version %d, this program reads %d: update it", m.Version, manifestVersion)
	}
	end := int64(0)
	for _, s := range m.Spans {
		if err := control.ValidatePieceName(s.Piece); err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
		if s.Offset < end || s.Bytes <= 0 || s.Bytes > m.Size-s.Offset {
			return fmt.Errorf("manifest: %s: %d bytes at %d, after %d and within %d", s.Name, s.Bytes, s.Offset, end, m.Size)
		}
		end = s.Offset + s.Bytes
	}
	return nil
}

// spans are what a piece is made of, in order.
func (m *Manifest) spans(piece string) (out []Span) {
	for _, s := range m.Spans {
		if s.Piece == piece {
			out = append(out, s)
		}
	}
	return out
}

// Need names the pieces that loading a range of layers takes, besides the
// manifest itself.
func (m *Manifest) Need(first, last int) []string {
	var out []string
	add := func(piece string) {
		if !slices.Contains(out, piece) && slices.ContainsFunc(m.Spans, func(s Span) bool { return s.Piece == piece }) {
			out = append(out, piece)
		}
	}
	add(control.PieceHeader)
	add(control.PieceShared)
	if first == 0 || m.Tied && last == m.Layers-1 {
		add(control.PieceEmbedding)
	}
	for l := first; l <= last; l++ {
		add(strconv.Itoa(l))
	}
	if last == m.Layers-1 {
		add(control.PieceHead)
	}
	return out
}
