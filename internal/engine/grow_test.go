package engine

import (
	"errors"
	"testing"
)

// grown is a session that holds some tokens and grows twice; its last logits must
// be those of a sequence that never moved.
func growAndCheck(t *testing.T, s *session, tokens []int32, cells int) {
	t.Helper()
	want := imitate(tokens, tinyLayers)
	half := len(tokens) / 2
	if _, err := s.Step(t.Context(), Input{Tokens: tokens[:half]}); err != nil {
		t.Fatal(err)
	}
	if err := s.Grow(t.Context(), cells); err != nil {
		t.Fatal(err)
	}
	if s.room != cells || s.Held() != half {
		t.Errorf("room for %d and %d held, want %d and %d", s.room, s.Held(), cells, half)
	}
	out, err := s.Step(t.Context(), Input{Position: half, Tokens: tokens[half:], Want: WantLast})
	if err != nil || out.Logits[0] != want[len(want)-1] {
		t.Errorf("after growing: %v, %v, want %v", out.Logits, err, want[len(want)-1])
	}
}

func count(n int) (tokens []int32) {
	for i := range n {
		tokens = append(tokens, int32(i+1))
	}
	return tokens
}

func TestASessionGrows(t *testing.T) {
	for name, around := range map[string]func(t *testing.T, c *core) *session{
		"in place": func(t *testing.T, c *core) *session { return mustOpen(t, c, Range{0, 3}, 20) },
		"into a gap": func(t *testing.T, c *core) *session {
			s := mustOpen(t, c, Range{0, 3}, 20)
			mustOpen(t, c, Range{0, 3}, 10)
			return s
		},
		"by the others making room below": func(t *testing.T, c *core) *session {
			first := mustOpen(t, c, Range{0, 3}, 30)
			other := mustOpen(t, c, Range{0, 3}, 10)
			s := mustOpen(t, c, Range{0, 3}, 20)
			mustOpen(t, c, Range{0, 3}, 30)
			first.Close()
			other.Close()
			mustOpen(t, c, Range{0, 3}, 5)
			return s
		},
		"by the others making room above": func(t *testing.T, c *core) *session {
			s := mustOpen(t, c, Range{0, 3}, 20)
			mustOpen(t, c, Range{0, 3}, 35)
			mustOpen(t, c, Range{0, 3}, 20)
			return s
		},
		"in different ways on different layers": func(t *testing.T, c *core) *session {
			mustOpen(t, c, Range{0, 0}, 10)
			s := mustOpen(t, c, Range{0, 3}, 20)
			mustOpen(t, c, Range{1, 1}, 40)
			mustOpen(t, c, Range{2, 2}, 10)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := imitated(t, Options{Cells: 100, RescueShare: -1}, &imitation{})
			s := around(t, c)
			var others []*session
			c.mu.Lock()
			for o := range c.sessions {
				if o != s {
					others = append(others, o)
				}
			}
			c.mu.Unlock()
			growAndCheck(t, s, count(40), 45)
			for _, o := range others {
				if o.layers == (Range{0, 3}) {
					tokens := count(o.room)
					out, err := o.Step(t.Context(), Input{Tokens: tokens, Want: WantLast})
					if want := imitate(tokens, tinyLayers); err != nil || out.Logits[0] != want[len(want)-1] {
						t.Errorf("a neighbour of %d cells: %v", o.room, err)
					}
				}
				o.Close()
			}
			// The last rows again, now that the neighbours have filled their cells.
			if err := s.Truncate(39); err != nil {
				t.Fatal(err)
			}
			out, err := s.Step(t.Context(), Input{Position: 39, Tokens: count(40)[39:], Want: WantLast})
			if want := imitate(count(40), tinyLayers); err != nil || out.Logits[0] != want[39] {
				t.Errorf("a neighbour wrote into its cells: %v, %v", out.Logits, err)
			}
			s.Close()
			if n := c.Fragments()[0].CellsFree; n != 100 {
				t.Errorf("%d cells free, want 100", n)
			}
		})
	}
}

// Where there is no room nothing changes, on no layer.
func TestASessionThatFindsNoRoomStaysAsItWas(t *testing.T) {
	c := imitated(t, Options{Cells: 80, RescueShare: 8}, &imitation{})
	s := mustOpen(t, c, Range{0, 3}, 20)
	other := mustOpen(t, c, Range{2, 2}, 40) // only one layer is full
	err := s.Grow(t.Context(), 31)
	wantError(t, "31 of 30 open cells", err, ErrNoCells)
	var cells *CellsError
	if !errors.As(err, &cells) || cells.Layer != 2 || cells.Need != 31 || cells.Free != 30 {
		t.Errorf("%+v", cells)
	}
	wantError(t, "more than the context", s.Grow(t.Context(), 5000), ErrNoCells)
	if n := c.Fragments()[0].CellsFree; n != 20 {
		t.Errorf("%d cells free, want 20", n)
	}
	rescue, err := c.Open(t.Context(), SessionOptions{Model: "m", Layers: Range{2, 2}, Cells: 5, Rescue: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := rescue.Grow(t.Context(), 15); err != nil { // into the cells that are kept for it
		t.Error(err)
	}
	wantError(t, "what the rescue took", s.Grow(t.Context(), 30), ErrNoCells)
	rescue.Close()
	other.Close()
	growAndCheck(t, s, count(40), 70)
	if err := s.Grow(t.Context(), 10); err != nil || s.room != 70 {
		t.Errorf("to fewer cells: %v, room for %d", err, s.room)
	}
	s.Close()
	wantError(t, "closed", s.Grow(t.Context(), 75), ErrClosed)
	if n := c.Fragments()[0].CellsFree; n != 80 {
		t.Errorf("%d cells free, want 80", n)
	}
}

// A move that fails leaves the session where it was; one of all runs of a layer
// ends that layer's sessions, as for Open.
func TestFailedMovesWhileGrowing(t *testing.T) {
	broken := errors.New("broken")
	k := &imitation{}
	c := imitated(t, Options{Cells: 100, RescueShare: -1}, k)
	s := mustOpen(t, c, Range{0, 3}, 20)
	beside := mustOpen(t, c, Range{0, 3}, 10)
	if _, err := s.Step(t.Context(), Input{Tokens: count(10)}); err != nil {
		t.Fatal(err)
	}
	hold(t, beside)
	k.moveError = broken
	wantError(t, "into a gap", s.Grow(t.Context(), 50), broken)
	if n := c.Fragments()[0].CellsFree; n != 70 {
		t.Errorf("%d cells free, want 70", n)
	}
	out, err := s.Step(t.Context(), Input{Position: 10, Tokens: []int32{11}, Want: WantLast})
	if want := imitate(count(11), tinyLayers); err != nil || out.Logits[0] != want[10] {
		t.Errorf("after it: %v, %v", out.Logits, err)
	}
	wantError(t, "by sliding", s.Grow(t.Context(), 90), broken)
	_, err = beside.Step(t.Context(), Input{Position: 1, Tokens: []int32{1}})
	wantError(t, "the neighbour's step", err, broken)
	s.Close()
	beside.Close()
	if n := c.Fragments()[0].CellsFree; n != 100 {
		t.Errorf("%d cells free, want 100", n)
	}
}
