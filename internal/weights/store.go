package weights

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"hecate/internal/control"
)

// A Store is the gateway's: whole model files by content hash. Several processes
// may use one folder.
type Store struct {
	dir string
	mu  struct {
		sync.Mutex
		manifests map[string]*Manifest // read before
	}
}

// OpenStore uses a folder, and makes it when it is not there.
func OpenStore(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the store of models: %w", err)
	}
	s := &Store{dir: dir}
	s.mu.manifests = map[string]*Manifest{}
	return s, nil
}

// Path is where a model's file is, whether it is there or not.
func (s *Store) Path(hash string) string { return filepath.Join(s.dir, hash+wholeSuffix) }

// Add takes a file into the store: by a second name for it, where file system and
// permissions allow, else by a copy. It appears whole or not at all. A file
// that is there already is not read again.
func (s *Store) Add(ctx context.Context, path string, progress func(done, total int64)) (*Cutting, error) {
	if c := s.same(path); c != nil {
		return c, nil
	}
	s.sweepCopies(time.Now())
	temp, err := s.bring(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("bring %s into the store of models: %w", path, err)
	}
	defer os.Remove(temp)
	c, err := cut(ctx, temp, progress)
	if err != nil {
		return nil, named(err, temp, path)
	}
	if err := s.keep(temp, c); err != nil {
		return nil, fmt.Errorf("the store of models: %w", err)
	}
	return c, nil
}

// keep gives a file that was read its name, and writes beside it what was read.
// The index comes last: it vouches for the others.
func (s *Store) keep(temp string, c *Cutting) error {
	index, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(s.dir, c.Hash+listSuffix), c.manifest, 0o600); err != nil {
		return err
	}
	if err := os.Rename(temp, s.Path(c.Hash)); err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(s.dir, c.Hash+indexSuffix), index, 0o600)
}

// named puts the file's own name into an error about its second one.
func named(err error, temp, path string) error {
	return &renamed{err, strings.ReplaceAll(err.Error(), temp, path)}
}

type renamed struct {
	error
	text string
}

func (r *renamed) Error() string { return r.text }
func (r *renamed) Unwrap() error { return r.error }

// same finds a file that is in the store under its second name, unless it was
// written to since.
func (s *Store) same(path string) *Cutting {
	st, err := os.Stat(path)
	if err != nil {
		return nil
	}
	entries, err := filepath.Glob(filepath.Join(s.dir, "*"+wholeSuffix))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		other, err := os.Stat(e)
		if err != nil || !os.SameFile(st, other) {
			continue
		}
		index := strings.TrimSuffix(e, wholeSuffix) + indexSuffix
		read, err := os.Stat(index)
		if err != nil || other.ModTime().After(read.ModTime()) {
			continue
		}
		c := &Cutting{}
		if data, err := os.ReadFile(index); err == nil && json.Unmarshal(data, c) == nil {
			return c
		}
	}
	return nil
}

// bring gives the file a second, temporary name in the store.
func (s *Store) bring(ctx context.Context, path string) (temp string, err error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	st, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() {
		return "", errors.New("not a regular file")
	}
	temp = filepath.Join(s.dir, "new-"+rand.Text())
	if os.Link(real, temp) == nil {
		return temp, nil
	}
	temp = filepath.Join(s.dir, copyPrefix+rand.Text())
	return temp, copyFile(ctx, temp, real)
}

const (
	// copyPrefix begins the name of a copy that is being made.
	copyPrefix = "copy-"
	// leftAfter is how long nobody has written to one that is not being made any
	// more.
	leftAfter = 24 * time.Hour
)

// sweepCopies removes what processes left that ended in the middle of a copy.
func (s *Store) sweepCopies(now time.Time) {
	left, err := filepath.Glob(filepath.Join(s.dir, copyPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range left {
		if st, err := os.Stat(path); err == nil && now.Sub(st.ModTime()) > leftAfter {
			_ = os.Remove(path) // it costs room, not correctness
		}
	}
}

func copyFile(ctx context.Context, to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, readerUntil{ctx, in}); err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		_ = os.Remove(to) // the first failure counts
	}
	return err
}

// readerUntil stops with the context.
type readerUntil struct {
	ctx context.Context
	r   io.Reader
}

func (r readerUntil) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// Remove takes a file out of the store; the name it came under is left alone.
func (s *Store) Remove(hash string) error {
	if err := control.ValidateHash(hash); err != nil {
		return err
	}
	for _, suffix := range []string{indexSuffix, wholeSuffix, listSuffix} {
		if err := os.Remove(filepath.Join(s.dir, hash+suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the store of models: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.manifests, hash)
	return nil
}

// Manifest reads the list of a model's spans.
func (s *Store) Manifest(hash string) (*Manifest, error) {
	if err := control.ValidateHash(hash); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.mu.manifests[hash]; m != nil {
		return m, nil
	}
	data, err := os.ReadFile(filepath.Join(s.dir, hash+listSuffix))
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(data)
	if err == nil {
		s.mu.manifests[hash] = m
	}
	return m, err
}

// Open gives a piece's content; fs.ErrNotExist when the store does not have it.
func (s *Store) Open(hash, piece string) (*Blob, error) {
	if err := errors.Join(control.ValidateHash(hash), control.ValidatePieceName(piece)); err != nil {
		return nil, err
	}
	if piece == control.PieceManifest {
		f, err := os.Open(filepath.Join(s.dir, hash+listSuffix))
		if err != nil {
			return nil, err
		}
		return blobOf(f)
	}
	m, err := s.Manifest(hash)
	if err != nil {
		return nil, err
	}
	spans := m.spans(piece)
	if len(spans) == 0 {
		return nil, fmt.Errorf("piece %s of %.12s: %w", piece, hash, fs.ErrNotExist)
	}
	f, err := os.Open(s.Path(hash))
	if err != nil {
		return nil, err
	}
	g := gathered{f, spans}
	return &Blob{io.NewSectionReader(g, 0, g.size()), f}, nil
}

// View gives a whole file to the engine. It is for nodes on the gateway's
// machine, which need not fetch what they can read; each piece that is used
// must pass its hash all the same.
func (s *Store) View(hash string, pieces []control.Piece, first, last int) (*View, error) {
	m, err := s.Manifest(hash)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(s.Path(hash))
	if err != nil {
		return nil, err
	}
	v := &View{size: m.Size, closers: []io.Closer{f}}
	for _, piece := range m.Need(first, last) {
		spans := m.spans(piece)
		if err := checkPiece(io.NewSectionReader(gathered{f, spans}, 0, gathered{f, spans}.size()), pieces, piece); err != nil {
			_ = v.Close() // nothing was written
			return nil, fmt.Errorf("%s: %w", s.Path(hash), err)
		}
		for _, sp := range spans {
			v.spans = append(v.spans, viewSpan{sp.Offset, sp.Bytes, f, sp.Offset})
		}
	}
	v.sort()
	return v, nil
}

// checkPiece hashes a piece's content.
func checkPiece(r io.Reader, pieces []control.Piece, name string) error {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	for _, p := range pieces {
		if p.Name == name && p.Sum != sum {
			return &CorruptError{What: "piece " + name, Want: p.Sum, Got: sum}
		}
	}
	return nil
}

// A CorruptError says that bytes are not those of the catalogue.
type CorruptError struct {
	What      string // which piece or tensor
	Want, Got string // SHA-256
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is corrupted: its SHA-256 begins with %.12s, the catalogue says %.12s", e.What, e.Got, e.Want)
}
