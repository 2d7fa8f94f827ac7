package weights

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"hecate/internal/control"
)

// A part is a piece that arrives: the bytes so far, hashed span by span. What it
// holds of finished spans is right; a span whose hash does not hold is dropped.
type part struct {
	file   partFile
	path   string
	spans  []Span
	name   string
	size   int64
	held   int64 // bytes written
	span   int   // being written
	inSpan int64 // bytes of it
	sum    hash.Hash
}

// part opens what has arrived of a piece, and checks it.
func (c *Cache) part(hash string, p control.Piece, spans []Span) (*part, error) {
	if err := os.MkdirAll(filepath.Join(c.dir, hash), 0o700); err != nil {
		return nil, fmt.Errorf("the folder for weights: %w", err)
	}
	path := c.path(hash, p.Name) + partSuffix
	f, err := c.create(path)
	if err != nil {
		return nil, fmt.Errorf("keep piece %s: %w", p.Name, err)
	}
	out := &part{file: f, path: path, spans: spans, name: p.Name, size: p.Bytes, sum: sha256.New()}
	if err := out.recall(); err != nil {
		_ = f.Close() // the first failure counts
		return nil, err
	}
	return out, nil
}

// recall takes up what an earlier transfer left. After a power cut it may hold
// anything: what does not pass is cut off.
func (p *part) recall() error {
	buf := make([]byte, 1<<20)
	for {
		n, err := p.file.Read(buf)
		var corrupt *CorruptError
		if herr := p.hash(buf[:n]); errors.As(herr, &corrupt) || errors.Is(herr, errTooLong) {
			return p.rewind(herr)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read what there is of piece %s: %w", p.name, err)
		}
	}
}

// rewind drops the span being written, or all when there is more than there may be.
func (p *part) rewind(why error) error {
	to := p.held - p.inSpan
	if errors.Is(why, errTooLong) {
		to, p.span = 0, 0
	}
	p.held, p.inSpan = to, 0
	p.sum.Reset()
	if err := p.file.Truncate(to); err != nil {
		return fmt.Errorf("piece %s: %w", p.name, err)
	}
	if _, err := p.file.Seek(to, io.SeekStart); err != nil {
		return fmt.Errorf("piece %s: %w", p.name, err)
	}
	return nil
}

var errTooLong = errors.New("longer than the catalogue says")

// hash takes bytes into account. A *CorruptError leaves the span to be rewound.
func (p *part) hash(b []byte) error {
	for len(b) > 0 {
		if p.span == len(p.spans) {
			return errTooLong
		}
		s := p.spans[p.span]
		k := min(int64(len(b)), s.Bytes-p.inSpan)
		p.sum.Write(b[:k])
		p.inSpan, p.held, b = p.inSpan+k, p.held+k, b[k:]
		if p.inSpan < s.Bytes {
			continue
		}
		if got := hex.EncodeToString(p.sum.Sum(nil)); got != s.Sum {
			return &CorruptError{What: fmt.Sprintf("%s of piece %s", s.Name, p.name), Want: s.Sum, Got: got}
		}
		p.span, p.inSpan = p.span+1, 0
		p.sum.Reset()
	}
	return nil
}

// Write implements io.Writer: first to disk, then into account.
func (p *part) Write(b []byte) (int, error) {
	n, err := p.file.Write(b)
	herr := p.hash(b[:n])
	if herr != nil {
		return n, errors.Join(herr, p.rewind(herr))
	}
	return n, err
}

// whole says that everything has arrived.
func (p *part) whole() bool { return p.span == len(p.spans) }

// finish makes a whole part the piece.
func (c *Cache) finish(key pieceKey, p *part) error {
	if err := errors.Join(p.file.Sync(), p.file.Close()); err != nil {
		return fmt.Errorf("keep piece %s: %w", key.piece, err)
	}
	if err := os.Rename(p.path, c.path(key.hash, key.piece)); err != nil {
		return fmt.Errorf("keep piece %s: %w", key.piece, err)
	}
	c.good(key)
	return nil
}
