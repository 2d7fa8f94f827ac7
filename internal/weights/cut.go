package weights

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"
	"strconv"

	"hecate/internal/control"
	"hecate/internal/gguf"
)

// A Cutting is what reading a whole model file tells.
type Cutting struct {
	Hash   string          `json:"hash"` // SHA-256 of the file: its name everywhere
	Size   int64           `json:"size"` // bytes
	Pieces []control.Piece `json:"pieces"`

	manifest []byte
}

// cut reads a GGUF file from one end to the other. progress, which may be nil,
// is told the bytes read.
func cut(ctx context.Context, path string, progress func(done, total int64)) (*Cutting, error) {
	head, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := head.Info()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the model: %w", err)
	}
	defer f.Close()
	c := &cutter{ctx: ctx, r: f, whole: sha256.New(), sums: map[string]*pieceSum{}, progress: progress, size: head.Size}
	m := &Manifest{Version: manifestVersion, Size: head.Size, Layers: info.Layers, Tied: info.TiedHead, Spans: spansOf(head, info.Layers)}
	for i := range m.Spans {
		if err := c.span(&m.Spans[i]); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	if err := c.skip(head.Size - c.at); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return c.finish(m)
}

// spansOf lists what belongs to pieces, in the file's order.
func spansOf(head *gguf.File, layers int) []Span {
	spans := []Span{{Name: control.PieceHeader, Piece: control.PieceHeader, Bytes: head.DataOffset}}
	for _, t := range head.Tensors {
		if piece := pieceOf(t.Name, layers); piece != "" {
			spans = append(spans, Span{Name: t.Name, Piece: piece, Offset: head.DataOffset + t.Offset, Bytes: t.Bytes()})
		}
	}
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.Offset, b.Offset) })
	return spans
}

// pieceOf says in which piece a tensor travels, "" for one that no layer needs.
func pieceOf(tensor string, layers int) string {
	switch p := gguf.Piece(tensor); {
	case p == gguf.PieceEmbedding:
		return control.PieceEmbedding
	case p == gguf.PieceHead:
		return control.PieceHead
	case p == gguf.PieceShared:
		return control.PieceShared
	case p >= 0 && p < layers:
		return strconv.Itoa(p)
	}
	return ""
}

// cutter hashes a file on the way through it: as a whole, by span and by piece.
type cutter struct {
	ctx      context.Context
	r        io.Reader
	at, size int64
	whole    hash.Hash
	sums     map[string]*pieceSum
	progress func(done, total int64)
}

type pieceSum struct {
	hash.Hash
	bytes int64
}

func (c *cutter) span(s *Span) error {
	if err := c.skip(s.Offset - c.at); err != nil {
		return err
	}
	piece := c.sums[s.Piece]
	if piece == nil {
		piece = &pieceSum{Hash: sha256.New()}
		c.sums[s.Piece] = piece
	}
	own := sha256.New()
	if err := c.read(s.Bytes, io.MultiWriter(c.whole, own, piece)); err != nil {
		return err
	}
	piece.bytes += s.Bytes
	s.Sum = hex.EncodeToString(own.Sum(nil))
	return nil
}

func (c *cutter) skip(n int64) error { return c.read(n, c.whole) }

// cutStep is how much is read between two looks at the context.
const cutStep = 8 << 20

func (c *cutter) read(n int64, into io.Writer) error {
	for n > 0 {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		step := min(n, cutStep)
		if _, err := io.CopyN(into, c.r, step); err != nil {
			return err
		}
		n -= step
		c.at += step
		if c.progress != nil {
			c.progress(c.at, c.size)
		}
	}
	return nil
}

// finish lists the pieces: the manifest first, then in the order of loading.
func (c *cutter) finish(m *Manifest) (*Cutting, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	sum := sha256.Sum256(data)
	out := &Cutting{Hash: hex.EncodeToString(c.whole.Sum(nil)), Size: c.size, manifest: data}
	out.Pieces = append(out.Pieces, control.Piece{Name: control.PieceManifest, Bytes: int64(len(data)), Sum: hex.EncodeToString(sum[:])})
	names := []string{control.PieceHeader, control.PieceShared, control.PieceEmbedding}
	for l := range m.Layers {
		names = append(names, strconv.Itoa(l))
	}
	for _, name := range append(names, control.PieceHead) {
		if s := c.sums[name]; s != nil {
			out.Pieces = append(out.Pieces, control.Piece{Name: name, Bytes: s.bytes, Sum: hex.EncodeToString(s.Sum(nil))})
		}
	}
	return out, nil
}
