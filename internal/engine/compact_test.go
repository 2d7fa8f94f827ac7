package engine

import (
	"errors"
	"testing"
)

// TestGapsAreJoined: three sessions fill the cells, the middle one leaves, and
// a session that fits into no gap gets in. The last one goes on undisturbed.
func TestGapsAreJoined(t *testing.T) {
	k := &imitation{}
	c := imitated(t, Options{Cells: 100, RescueShare: -1}, k)
	tokens := make([]int32, 45)
	for i := range tokens {
		tokens[i] = int32(i + 1)
	}
	want := imitate(tokens, tinyLayers)
	mustOpen(t, c, Range{0, 0}, 10) // layer 0 is laid out differently from the others
	small := mustOpen(t, c, Range{0, 3}, 20)
	large := mustOpen(t, c, Range{0, 3}, 45)
	if _, err := large.Step(t.Context(), Input{Tokens: tokens[:40]}); err != nil {
		t.Fatal(err)
	}
	small.Close()
	s := mustOpen(t, c, Range{0, 3}, 40)
	if _, err := s.Step(t.Context(), Input{Tokens: tokens[:40]}); err != nil {
		t.Fatal(err)
	}
	out, err := large.Step(t.Context(), Input{Position: 40, Tokens: tokens[40:], Want: WantLast})
	if err != nil || out.Logits[0] != want[44] {
		t.Errorf("after moving: %v, %v, want %v", out.Logits[0], err, want[44])
	}
	large.Close()
	s.Close()
	if n := c.Fragments()[0].CellsFree; n != 90 {
		t.Errorf("%d cells free, want 90", n)
	}
}

// TestGapsAreNotJoinedInVain: a session for which there is no room at all does
// not move others, and the reserve stays closed to it.
func TestGapsAreNotJoinedInVain(t *testing.T) {
	k := &imitation{}
	c := imitated(t, Options{Cells: 80, RescueShare: 8}, k)
	small := mustOpen(t, c, Range{0, 3}, 20)
	hold(t, mustOpen(t, c, Range{0, 3}, 30))
	k.moveError = errors.New("moved")
	small.Close()
	_, err := c.Open(t.Context(), SessionOptions{Model: "m", Layers: Range{0, 3}, Cells: 41})
	wantError(t, "41 of 40 open cells", err, ErrNoCells)
}

// hold puts something into a session's cells, which would have to move along.
func hold(t *testing.T, s *session) {
	t.Helper()
	if _, err := s.Step(t.Context(), Input{Tokens: []int32{1}}); err != nil {
		t.Fatal(err)
	}
}

func TestFailedMoveEndsTheLayersSessions(t *testing.T) {
	broken := errors.New("broken")
	k := &imitation{}
	c := imitated(t, Options{Cells: 100, RescueShare: -1}, k)
	small := mustOpen(t, c, Range{0, 3}, 30)
	moved := mustOpen(t, c, Range{0, 3}, 40)
	other := mustOpen(t, c, Range{1, 1}, 10)
	hold(t, moved)
	k.moveError = broken
	small.Close()
	_, err := c.Open(t.Context(), SessionOptions{Model: "m", Layers: Range{0, 3}, Cells: 50})
	wantError(t, "open", err, broken)
	_, err = moved.Step(t.Context(), Input{Position: 1, Tokens: []int32{1}})
	wantError(t, "step", err, broken)
	moved.Close()
	if other.Held() != 0 {
		t.Error("held")
	}
	other.Close()
	if n := c.Fragments()[0].CellsFree; n != 100 {
		t.Errorf("%d cells free, want 100", n)
	}
}
