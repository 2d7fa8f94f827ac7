package dispatch

import (
	"errors"
	"testing"

	"hecate/internal/gateway/answer"
)

// growing is a need that has room for so many cells and will ask for more.
func growing(cells, next int) answer.Need {
	n := need(1000)
	n.Cells, n.Next = cells, next
	return n
}

func (w *world) chooseNeed(t *testing.T, n answer.Need) answer.Grant {
	t.Helper()
	g, err := w.d.Choose(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A grant grows on all nodes of its route or on none, not into the cells that are
// kept for rescues, and is given back with all that it has.
func TestAGrantGrows(t *testing.T) {
	w := newWorld(Config{}, halves(1), 2, 800)
	w.nodes[0].layers.Last, w.nodes[1].layers.First = 5, 6
	w.report()
	g := w.chooseNeed(t, growing(100, 100))
	for _, c := range []struct {
		others, cells, room int
		ok                  bool
	}{{0, 300, 400, true}, {0, 300, 400, true}, {0, 200, 400, true}, {0, 701, 400, false}, {300, 401, 100, false}, {300, 400, 0, true}} {
		if c.others > 0 { // on the second stage's node only
			w.nodes[1].free = 800 - 300 - c.others
			w.report("n1")
		}
		err := w.d.Grow(t.Context(), growing(c.cells, 0), g)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrFull) {
			t.Errorf("grown to %d: %v", c.cells, err)
		}
		var full *RoomError
		if err != nil && (!errors.As(err, &full) || full.Missing["n1"] != 1 || full.Shadows != 0) {
			t.Errorf("to %d: %+v", c.cells, full)
		}
		if left := w.room("n1"); left != c.room {
			t.Errorf("to %d: %d cells are left, want %d", c.cells, left, c.room)
		}
	}
	if left := w.room("n0"); left != 300 {
		t.Errorf("%d cells are left at the first node, want 300", left)
	}
	w.d.Release(g)
	w.idle(t)
}

// What answers that run will ask for soon is kept from newcomers: the largest of their
// portions; from one that gave way, half of them all; from a rescue, nothing.
func TestWhatIsKeptForThoseThatRun(t *testing.T) {
	w := newWorld(Config{}, copies(1), 1, 800) // 700 to be had
	a := w.chooseNeed(t, growing(100, 100))
	b := w.chooseNeed(t, growing(100, 100))
	c := w.chooseNeed(t, growing(100, 100))
	for _, c := range []struct {
		name          string
		begun, rescue bool
		most          int
	}{{"newcomer", false, false, 300}, {"returner", true, false, 250}, {"rescue", true, true, 500}} {
		for _, more := range []int{0, 1} {
			n := growing(c.most+more, 0)
			n.Begun, n.Rescue = c.begun, c.rescue
			g, err := w.d.Choose(t.Context(), n)
			if (err == nil) != (more == 0) {
				t.Errorf("%s, %d cells: %v", c.name, n.Room(), err)
			}
			if err == nil {
				w.d.Release(g)
			}
		}
	}
	// The growth itself is what it was kept for.
	if err := w.d.Grow(t.Context(), growing(500, 0), a); err != nil {
		t.Error(err)
	}
	w.d.Release(a)
	w.d.Release(b)
	w.d.Release(c)
	if r := w.d.mu.nodes["n0"].room("m"); r.soon != 0 || r.all != 0 || len(r.next) != 0 {
		t.Errorf("%d and %d are kept for nobody", r.soon, r.all)
	}
	w.idle(t)
}

// Shadows make room for those that grow, and grow themselves only while there is
// plenty.
func TestShadowsAndGrowth(t *testing.T) {
	w := newWorld(Config{}, copies(2), 2, 1000) // 875 to be had
	g := w.choose(t, 100)
	s, err := w.standby(g, 100)
	if err != nil {
		t.Fatal(err)
	}
	at := s.Stages[0].Node
	if !w.d.Widen(s.Token, growing(300, 0)) || w.room(at) != 575 {
		t.Errorf("%d cells are left at %s", w.room(at), at)
	}
	if w.d.Widen(s.Token, growing(501, 0)) || w.room(at) != 575 {
		t.Errorf("a shadow took more than half: %d cells are left at %s", w.room(at), at)
	}
	other := w.choose(t, 400)
	if nodeOf(other) != at {
		t.Fatalf("%s, want %s", nodeOf(other), at)
	}
	err = w.d.Grow(t.Context(), growing(600, 0), other)
	var full *RoomError
	if !errors.As(err, &full) || full.Shadows != 1 || full.Missing[at] != 25 || s.Revoked.Err() == nil {
		t.Errorf("%v, revoked: %v", err, s.Revoked.Err())
	}
	w.d.Dismiss(s.Token)
	if err := w.d.Grow(t.Context(), growing(600, 0), other); err != nil {
		t.Error(err)
	}
	if w.d.Widen(s.Token, growing(10, 0)) {
		t.Error("a shadow that is gone grew")
	}
	w.d.Release(g)
	w.d.Release(other)
	w.idle(t)
}

// A rescue that only lacks room says so; one that lacks nodes does not.
func TestARescueWithoutRoom(t *testing.T) {
	w := newWorld(Config{}, copies(2), 2, 1000)
	g := w.choose(t, 600)
	h := w.choose(t, 600)
	_, _, err := w.d.Rescue(t.Context(), need(600), g, []answer.Failure{{Node: nodeOf(g), Kind: answer.Gone}}, answer.Progress{Tokens: 599, StatesKept: true})
	if !errors.Is(err, ErrFull) {
		t.Errorf("the other copy is full: %v", err)
	}
	_, _, err = w.d.Rescue(t.Context(), need(600), h, []answer.Failure{{Node: nodeOf(h), Kind: answer.Gone}}, answer.Progress{Tokens: 599, StatesKept: true})
	if err == nil || errors.Is(err, ErrFull) {
		t.Errorf("all nodes are dead: %v", err)
	}
	w.d.Release(g)
	w.d.Release(h)
	w.idle(t)
}

// What answers of other gateways will ask for is kept like what our own will.
func TestGrowthOfOtherGatewaysIsKept(t *testing.T) {
	r := &room{cells: 1000, soon: 100, all: 300}
	for _, c := range []struct {
		afar     map[string]Growth
		newcomer int
		returner int
	}{
		{nil, 100, 150},
		{map[string]Growth{"two": {50, 100}}, 100, 200},
		{map[string]Growth{"two": {250, 300}, "three": {10, 10}}, 250, 305},
	} {
		r.afar = c.afar
		if n, b := r.kept(newcomer), r.kept(returner); n != c.newcomer || b != c.returner || r.kept(patient) != 0 {
			t.Errorf("with %v %d is kept from a newcomer and %d from one that comes back, want %d and %d", c.afar, n, b, c.newcomer, c.returner)
		}
	}
	d := New(Config{})
	d.bookLocked("n").room("m").expect(1, 70)
	if got := d.Expected("m"); len(got) != 1 || got["n"] != (Growth{70, 70}) || d.Expected("other") != nil {
		t.Errorf("expected %v", got)
	}
	d.ExpectAfar("two", "m", map[string]Growth{"n": {5, 9}})
	if got := d.bookLocked("n").room("m").afar["two"]; got != (Growth{5, 9}) {
		t.Errorf("heard of %v", got)
	}
	d.ExpectAfar("two", "m", nil)
	if got := d.bookLocked("n").room("m").afar; len(got) != 0 {
		t.Errorf("remembers %v of a gateway that wants nothing", got)
	}
}
