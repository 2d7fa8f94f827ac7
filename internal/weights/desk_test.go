package weights

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"hecate/internal/control"
	"hecate/swarm"
)

func sumOfBytes(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// One node at a time takes a piece from the gateway; others are sent to other
// pieces, wait, or go to a neighbour.
func TestTheDesk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Desk{}
		have := map[string][]Holder{}
		ask := func(node string, pieces ...string) Assignment {
			return d.Assign(node, "h", Question{Pieces: pieces}, func(p string) []Holder { return have[p] })
		}
		want := func(what string, got, want Assignment) {
			t.Helper()
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: %s", what, d)
			}
		}
		want("the first", ask("a", "1", "2"), Assignment{Piece: "1"})
		want("the second takes another", ask("b", "1", "2"), Assignment{Piece: "2"})
		want("the third waits", ask("c", "1", "2"), Assignment{Wait: askAgain})
		want("whose turn it is may ask again", ask("a", "1"), Assignment{Piece: "1"})

		time.Sleep(claimTime / 2)
		d.flows("a", "h", "1")
		time.Sleep(claimTime/2 + time.Second)
		want("bytes that flow keep the turn", ask("c", "1"), Assignment{Wait: askAgain})
		want("none do, and it is lost", ask("c", "2"), Assignment{Piece: "2"})

		have["1"] = []Holder{{"a", []string{"a:1"}}}
		want("a neighbour has it", ask("c", "1"), Assignment{Piece: "1", Node: "a", Addresses: []string{"a:1"}})
		have["1"] = append(have["1"], Holder{"b", []string{"b:1"}})
		want("the least asked neighbour", ask("c", "1"), Assignment{Piece: "1", Node: "b", Addresses: []string{"b:1"}})

		q := Question{Pieces: []string{"1"}, Avoid: map[string][]string{"1": {"a", "b"}}}
		holders := func(p string) []Holder { return have[p] }
		want("nobody but the gateway, whose piece is with a already", d.Assign("c", "h", q, holders), Assignment{Piece: "1"})
		q.Avoid["1"] = []string{"a", "b", ""}
		want("nobody at all", d.Assign("c", "h", q, holders), Assignment{})
	})
}

// Pieces that nobody wants go after a while, not at once.
func TestSweeping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := OpenCache(t.TempDir(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		hash := strings.Repeat("ab", 32)
		if err := os.MkdirAll(filepath.Join(c.Dir(), hash), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"0", "1", "2", "4", "header", "5.part", "strange"} {
			if err := os.WriteFile(filepath.Join(c.Dir(), hash, name), []byte("1234"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		stored := []control.Stored{{Hash: hash, Layers: []swarm.LayerRange{swarm.Layers(0, 2), swarm.Layers(4, 4)}, Others: []string{"header"}}}
		if d := cmp.Diff(stored, c.Stored()); d != "" {
			t.Error(d)
		}
		wanted := func(_, piece string) bool { return piece == "1" || piece == "header" }
		if freed := c.Sweep(wanted, time.Hour); freed != 0 {
			t.Errorf("%d bytes went at once", freed)
		}
		time.Sleep(30 * time.Minute)
		c.Sweep(func(_, piece string) bool { return piece != "2" }, time.Hour) // all but 2 are wanted again
		time.Sleep(31 * time.Minute)
		if freed := c.Sweep(wanted, time.Hour); freed != 4 || c.Has(hash, "2") {
			t.Errorf("%d bytes went, want the 4 of piece 2", freed)
		}
		time.Sleep(time.Hour)
		if freed := c.Sweep(wanted, time.Hour); freed != 12 {
			t.Errorf("%d bytes went, want 12", freed)
		}
		if d := cmp.Diff([]control.Stored{{Hash: hash, Layers: []swarm.LayerRange{swarm.Layers(1, 1)}, Others: []string{"header"}}}, c.Stored()); d != "" {
			t.Error(d)
		}
	})
}
