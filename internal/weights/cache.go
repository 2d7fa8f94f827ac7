package weights

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hecate/internal/control"
	"hecate/swarm"
)

// A Cache is a node's: pieces, each a file of its own, in a folder per model's
// content hash. A file without the suffix .part is whole and was verified when
// it came; before its first use in a process it is verified again.
type Cache struct {
	dir    string
	log    *slog.Logger
	create func(path string) (partFile, error)
	mu     struct {
		sync.Mutex
		verified  map[pieceKey]bool
		unwanted  map[pieceKey]time.Time // since when
		manifests map[string]*Manifest
	}
}

// pieceKey names a piece of one model's content.
type pieceKey struct{ hash, piece string }

// partFile is what a piece that arrives is written to.
type partFile interface {
	io.ReadWriteSeeker
	io.Closer
	Truncate(int64) error
	Sync() error
}

// OpenCache uses a folder, and makes it when it is not there.
func OpenCache(dir string, log *slog.Logger) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the folder for weights: %w", err)
	}
	c := &Cache{dir: dir, log: log, create: func(path string) (partFile, error) {
		return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	}}
	c.mu.verified, c.mu.unwanted, c.mu.manifests = map[pieceKey]bool{}, map[pieceKey]time.Time{}, map[string]*Manifest{}
	return c, nil
}

// Dir is the folder.
func (c *Cache) Dir() string { return c.dir }

func (c *Cache) path(hash, piece string) string { return filepath.Join(c.dir, hash, piece) }

// Has says whether a piece is there as a whole.
func (c *Cache) Has(hash, piece string) bool {
	if errors.Join(control.ValidateHash(hash), control.ValidatePieceName(piece)) != nil {
		return false
	}
	st, err := os.Stat(c.path(hash, piece))
	return err == nil && st.Mode().IsRegular()
}

// Open gives a piece's content; fs.ErrNotExist when it is not there.
func (c *Cache) Open(hash, piece string) (*Blob, error) {
	if err := errors.Join(control.ValidateHash(hash), control.ValidatePieceName(piece)); err != nil {
		return nil, err
	}
	f, err := os.Open(c.path(hash, piece))
	if err != nil {
		return nil, err
	}
	return blobOf(f)
}

// verify hashes a piece unless this process did already, and nobody has removed or cut
// it since. One that is corrupted is removed, so that it is fetched again.
func (c *Cache) verify(hash string, p control.Piece) error {
	key := pieceKey{hash, p.Name}
	c.mu.Lock()
	known := c.mu.verified[key]
	c.mu.Unlock()
	if st, err := os.Stat(c.path(hash, p.Name)); known && err == nil && st.Size() == p.Bytes {
		return nil
	}
	c.forget(key)
	b, err := c.Open(hash, p.Name)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := checkPiece(b, []control.Piece{p}, p.Name); err != nil {
		c.log.Warn("a piece on disk is thrown away", "file", c.path(hash, p.Name), "because", err)
		return errors.Join(fmt.Errorf("%s: %w", c.path(hash, p.Name), err), os.Remove(c.path(hash, p.Name)))
	}
	c.good(key)
	return nil
}

// forget takes back what is known of a piece.
func (c *Cache) forget(key pieceKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetLocked(key)
}

func (c *Cache) forgetLocked(key pieceKey) {
	delete(c.mu.verified, key)
	if key.piece == control.PieceManifest {
		delete(c.mu.manifests, key.hash)
	}
}

func (c *Cache) good(key pieceKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.verified[key] = true
}

// Manifest reads a model's manifest, which must be there.
func (c *Cache) Manifest(hash string) (*Manifest, error) {
	c.mu.Lock()
	m := c.mu.manifests[hash]
	c.mu.Unlock()
	if m != nil {
		return m, nil
	}
	b, err := c.Open(hash, control.PieceManifest)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if b.Size() > maxManifest {
		return nil, fmt.Errorf("a manifest of %d bytes, at most %d are read", b.Size(), maxManifest)
	}
	data, err := io.ReadAll(b)
	if err != nil {
		return nil, err
	}
	if m, err = decodeManifest(data); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.manifests[hash] = m
	return m, nil
}

// Lacking names the pieces that a range of layers needs and that are not there,
// in the order in which they should come. Pieces found corrupted are among them.
func (c *Cache) Lacking(hash string, pieces []control.Piece, first, last int) ([]control.Piece, error) {
	list, err := c.missing(hash, pieces, []string{control.PieceManifest})
	if err != nil || len(list) > 0 {
		return list, err
	}
	m, err := c.Manifest(hash)
	if err != nil {
		return nil, err
	}
	return c.missing(hash, pieces, m.Need(first, last))
}

func (c *Cache) missing(hash string, pieces []control.Piece, names []string) (out []control.Piece, err error) {
	for _, name := range names {
		i := slices.IndexFunc(pieces, func(p control.Piece) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("the catalogue does not know the piece %s of %.12s", name, hash)
		}
		var corrupt *CorruptError
		switch err := c.verify(hash, pieces[i]); {
		case errors.Is(err, fs.ErrNotExist), errors.As(err, &corrupt):
			out = append(out, pieces[i])
		case err != nil:
			return nil, err
		}
	}
	return out, nil
}

// View gives the pieces of a range of layers to the engine as one file. They must
// all be there: see Lacking.
func (c *Cache) View(hash string, first, last int) (*View, error) {
	m, err := c.Manifest(hash)
	if err != nil {
		return nil, err
	}
	v := &View{size: m.Size}
	for _, piece := range m.Need(first, last) {
		b, err := c.Open(hash, piece)
		if err != nil {
			_ = v.Close() // nothing was written
			return nil, fmt.Errorf("piece %s: %w", piece, err)
		}
		v.closers = append(v.closers, b)
		at := int64(0)
		for _, s := range m.spans(piece) {
			v.spans = append(v.spans, viewSpan{s.Offset, s.Bytes, b, at})
			at += s.Bytes
		}
	}
	v.sort()
	return v, nil
}

// list calls visit with every piece on disk, whole or not.
func (c *Cache) list(visit func(key pieceKey, whole bool, path string)) {
	models, err := os.ReadDir(c.dir)
	if err != nil {
		return // nothing to see: whoever writes there will say why
	}
	for _, d := range models {
		if !d.IsDir() || control.ValidateHash(d.Name()) != nil {
			continue
		}
		files, err := os.ReadDir(filepath.Join(c.dir, d.Name()))
		if err != nil {
			continue
		}
		for _, f := range files {
			piece, part := strings.CutSuffix(f.Name(), partSuffix)
			if control.ValidatePieceName(piece) == nil {
				visit(pieceKey{d.Name(), piece}, !part, filepath.Join(c.dir, d.Name(), f.Name()))
			}
		}
	}
}

// Stored lists the whole pieces, for the node's report.
func (c *Cache) Stored() []control.Stored {
	byHash := map[string]*control.Stored{}
	layers := map[string][]int{}
	var order []string
	c.list(func(key pieceKey, whole bool, _ string) {
		if !whole {
			return
		}
		s := byHash[key.hash]
		if s == nil {
			s = &control.Stored{Hash: key.hash}
			byHash[key.hash] = s
			order = append(order, key.hash)
		}
		if n, err := strconv.Atoi(key.piece); err == nil {
			layers[key.hash] = append(layers[key.hash], n)
		} else {
			s.Others = append(s.Others, key.piece)
		}
	})
	var out []control.Stored
	for _, hash := range order {
		s := byHash[hash]
		s.Layers = runs(layers[hash])
		out = append(out, *s)
	}
	return out
}

// runs joins layer numbers to ranges.
func runs(layers []int) (out []swarm.LayerRange) {
	slices.Sort(layers)
	for _, l := range layers {
		if n := len(out); n > 0 && out[n-1].Last == l-1 {
			out[n-1].Last = l
			continue
		}
		out = append(out, swarm.LayerRange{First: l, Last: l})
	}
	return out
}

// Sweep removes pieces that nobody has wanted for so long, and gives the bytes
// that this freed.
func (c *Cache) Sweep(wanted func(hash, piece string) bool, after time.Duration) (freed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, seen := time.Now(), map[pieceKey]bool{}
	c.list(func(key pieceKey, _ bool, path string) {
		if wanted(key.hash, key.piece) {
			return
		}
		since, marked := c.mu.unwanted[key]
		if !marked {
			since = now
		}
		seen[key] = true
		c.mu.unwanted[key] = since
		st, err := os.Stat(path)
		if now.Sub(since) < after || err != nil || os.Remove(path) != nil {
			return
		}
		freed += st.Size()
		c.forgetLocked(key)
		_ = os.Remove(filepath.Dir(path)) // fails as long as there is something in it
	})
	for key := range c.mu.unwanted {
		if !seen[key] {
			delete(c.mu.unwanted, key)
		}
	}
	return freed
}
