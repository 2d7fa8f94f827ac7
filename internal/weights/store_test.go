package weights

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hecate/internal/control"
	"hecate/internal/gguf"
)

func sumOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// A file comes into the store under the hash of its content, with every tensor's
// and every piece's hash, and the pieces are those bytes.
func TestAFileInPieces(t *testing.T) {
	k := newKit(t)
	if want := sumOf(t, k.path); k.cutting.Hash != want || sumOf(t, k.store.Path(want)) != want {
		t.Fatalf("stored as %s, want %s", k.cutting.Hash, want)
	}
	m, err := k.store.Manifest(k.cutting.Hash)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := gguf.Sums(k.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range m.Spans[1:] {
		if want := sums[s.Name]; s.Sum != hex.EncodeToString(want[:]) {
			t.Errorf("%s has the sum %s, want %x", s.Name, s.Sum, want)
		}
	}
	if len(m.Spans)-1 != len(sums) {
		t.Errorf("%d tensors in pieces, the file has %d", len(m.Spans)-1, len(sums))
	}
	for _, p := range k.cutting.Pieces {
		b, err := k.store.Open(k.cutting.Hash, p.Name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(b)
		sum := sha256.Sum256(data)
		if err != nil || int64(len(data)) != p.Bytes || hex.EncodeToString(sum[:]) != p.Sum {
			t.Errorf("piece %s: %d bytes (%v) with the sum %x, want %d with %s", p.Name, len(data), err, sum, p.Bytes, p.Sum)
		}
		b.Close()
	}
}

func TestWhatARangeNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		tied        bool
		first, last int
		want        []string
	}{
		"all":                    {false, 0, 3, []string{"header", "shared", "embedding", "0", "1", "2", "3", "head"}},
		"the first":              {false, 0, 0, []string{"header", "shared", "embedding", "0"}},
		"the middle":             {false, 1, 2, []string{"header", "shared", "1", "2"}},
		"the last":               {false, 3, 3, []string{"header", "shared", "3", "head"}},
		"the last of a tied one": {true, 3, 3, []string{"header", "shared", "embedding", "3", "head"}},
	} {
		s, err := OpenStore(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		cutting, err := s.Add(t.Context(), model(t, t.TempDir(), c.tied), nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Manifest(cutting.Hash)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, m.Need(c.first, c.last)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// A file that is in the store already is not read again, unless it was written to.
func TestAFileIsReadOnce(t *testing.T) {
	k := newKit(t)
	reads := func() (n int) {
		if _, err := k.store.Add(t.Context(), k.path, func(int64, int64) { n++ }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := reads(); n != 0 {
		t.Errorf("read again in %d steps", n)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(k.store.Path("x")), k.cutting.Hash+indexSuffix)); err != nil {
		t.Fatal(err)
	}
	if n := reads(); n == 0 {
		t.Error("not read, though nothing vouched for it")
	}
}

// What is no model leaves nothing behind, and the error speaks of the file.
func TestARefusedFileLeavesNothing(t *testing.T) {
	s, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad.gguf")
	if err := os.WriteFile(bad, bytes.Repeat([]byte("x"), 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	var format *gguf.FormatError
	if _, err := s.Add(t.Context(), bad, nil); !errors.As(err, &format) || !strings.Contains(err.Error(), bad) {
		t.Errorf("%v, want a format error that names %s", err, bad)
	}
	if _, err := s.Add(t.Context(), filepath.Dir(bad), nil); err == nil {
		t.Error("a folder was added")
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.Add(gone, model(t, t.TempDir(), false), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want cancelled", err)
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// Where no second name can be given, the file is copied.
func TestACopyIsTheSame(t *testing.T) {
	from := model(t, t.TempDir(), false)
	to := filepath.Join(t.TempDir(), "copy")
	if err := copyFile(t.Context(), to, from); err != nil {
		t.Fatal(err)
	}
	if sumOf(t, to) != sumOf(t, from) {
		t.Error("the copy differs")
	}
	if err := copyFile(t.Context(), to, from); err == nil {
		t.Error("a copy over another file")
	}
}

func TestRemovingAModel(t *testing.T) {
	k := newKit(t)
	if err := k.store.Remove(k.cutting.Hash); err != nil {
		t.Fatal(err)
	}
	if _, err := k.store.Open(k.cutting.Hash, "0"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want that it does not exist", err)
	}
	if _, err := os.Stat(k.path); err != nil {
		t.Errorf("the file it came from: %v", err)
	}
	if err := k.store.Remove(k.cutting.Hash); err != nil {
		t.Errorf("removing it twice: %v", err)
	}
}

// The gateway's own file serves nodes of its machine, if it is what it was.
func TestTheSharedFile(t *testing.T) {
	k := newKit(t)
	v, err := k.store.View(k.cutting.Hash, k.cutting.Pieces, 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gguf.Read(v, v.Size(), "view"); err != nil {
		t.Error(err)
	}
	v.Close()
	f, err := os.OpenFile(k.store.Path(k.cutting.Hash), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := k.store.Manifest(k.cutting.Hash)
	s := m.spans("2")[0]
	if _, err := f.WriteAt([]byte{1, 2, 3, 4, 5}, s.Offset); err != nil {
		t.Fatal(err)
	}
	f.Close()
	var corrupt *CorruptError
	if _, err := k.store.View(k.cutting.Hash, k.cutting.Pieces, 2, 2); !errors.As(err, &corrupt) {
		t.Errorf("%v, want that it is corrupted", err)
	}
	if v, err := k.store.View(k.cutting.Hash, k.cutting.Pieces, 1, 1); err != nil {
		t.Errorf("another layer: %v", err)
	} else {
		v.Close()
	}
}

// A view has what is there, and says what is not.
func TestAViewOfSomeLayers(t *testing.T) {
	k := newKit(t)
	m := k.member("first")
	lacking, err := m.cache.Lacking(k.cutting.Hash, k.cutting.Pieces, 1, 1)
	if err != nil || len(lacking) != 1 || lacking[0].Name != control.PieceManifest {
		t.Fatalf("%v %v, want the manifest first", lacking, err)
	}
	for range 2 {
		if lacking, err = m.cache.Lacking(k.cutting.Hash, k.cutting.Pieces, 1, 1); err != nil {
			t.Fatal(err)
		}
		if err := m.Fetch(t.Context(), k.cutting.Hash, lacking, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	v, err := m.cache.View(k.cutting.Hash, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if _, err := gguf.Read(v, v.Size(), "view"); err != nil {
		t.Errorf("the header: %v", err)
	}
	man, _ := m.cache.Manifest(k.cutting.Hash)
	if _, err := v.ReadAt(make([]byte, 8), man.spans("1")[0].Offset); err != nil {
		t.Errorf("its layer: %v", err)
	}
	if _, err := v.ReadAt(make([]byte, 8), man.spans("2")[0].Offset); err == nil {
		t.Error("another layer could be read")
	}
	if _, err := v.ReadAt(make([]byte, 8), v.Size()); !errors.Is(err, io.EOF) {
		t.Errorf("past the end: %v", err)
	}
}
