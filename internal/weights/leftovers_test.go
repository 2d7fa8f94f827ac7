package weights

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Somebody who needs room removes files by hand while the node runs, and a disk that
// was full cuts one short: what is missing is fetched again.
func TestPiecesThatSomebodyRemoved(t *testing.T) {
	k := newKit(t)
	m := k.member("first")
	if err := m.fetchAll(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	k.sameAsFile(m)
	for _, piece := range []string{"manifest", "2"} {
		if err := os.Remove(m.cache.path(k.cutting.Hash, piece)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(m.cache.path(k.cutting.Hash, "1"), 100); err != nil {
		t.Fatal(err)
	}
	if err := m.fetchAll(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	k.sameAsFile(m)
	if err := os.RemoveAll(filepath.Join(m.cache.Dir(), k.cutting.Hash)); err != nil {
		t.Fatal(err)
	}
	if err := m.fetchAll(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	k.sameAsFile(m)
}

// A copy that a power cut left half done takes no room for ever; one that is being
// made by another process is left alone.
func TestCopiesThatWereNeverFinished(t *testing.T) {
	s, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	old, young := filepath.Join(s.dir, copyPrefix+"OLD"), filepath.Join(s.dir, copyPrefix+"YOUNG")
	for _, path := range []string{old, young} {
		if err := os.WriteFile(path, []byte("half of a model"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now().Add(-leftAfter - time.Hour)
	if err := os.Chtimes(old, before, before); err != nil {
		t.Fatal(err)
	}
	path := model(t, t.TempDir(), false)
	if err := os.Chtimes(path, before, before); err != nil { // an old file that gets a second name is none
		t.Fatal(err)
	}
	if _, err := s.Add(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("what a day ago was left half done is still there: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("what another process copies now is gone: %v", err)
	}
}
