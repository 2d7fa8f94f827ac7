package dispatch

import (
	"context"
	"errors"
	"testing"

	"hecate/internal/gateway/answer"
)

// standby asks for the shadow of a grant's only stage.
func (w *world) standby(g answer.Grant, cells int) (answer.Standby, error) {
	return w.d.Standby(need(cells), g.Route, 0)
}

func TestAStandbyIsWhereARescueWouldGo(t *testing.T) {
	w := newWorld(Config{}, copies(2), 2, 1000)
	g := w.choose(t, 100)
	s, err := w.standby(g, 100)
	if err != nil {
		t.Fatal(err)
	}
	other := name(1)
	if nodeOf(g) == other {
		other = name(0)
	}
	if len(s.Stages) != 1 || s.Stages[0].Node != other || s.Stages[0].Layers != g.Route.Stages[0].Layers {
		t.Fatalf("the shadow of %s is kept at %v, want %s", g.Route, s.Stages, other)
	}
	if left := w.room(other); left != Sellable(1000)-100 {
		t.Errorf("%d cells are left at %s", left, other)
	}
	// The rescue spends the shadow's room instead of taking the same once more.
	next, _, err := w.d.Rescue(context.Background(), need(100), g, []answer.Failure{{Node: nodeOf(g), Kind: answer.Gone}},
		answer.Progress{Tokens: 90, StatesKept: true, Warm: map[string]int{other: 64}, Standbys: []uint64{s.Token}})
	if err != nil || nodeOf(next) != other {
		t.Fatalf("%v, %v", next.Route, err)
	}
	if left := w.room(other); left != Sellable(1000)-100 {
		t.Errorf("%d cells are left at %s after the rescue", left, other)
	}
	w.d.Dismiss(s.Token) // spent: nothing happens
	w.d.Release(next)
	w.idle(t)
}

// A rescue that goes elsewhere, or fails, leaves the shadow its room.
func TestARescueThatDoesNotUseTheStandby(t *testing.T) {
	w := newWorld(Config{}, copies(2), 2, 1000)
	g := w.choose(t, 100)
	s, err := w.standby(g, 100)
	if err != nil {
		t.Fatal(err)
	}
	other := s.Stages[0].Node
	_, _, err = w.d.Rescue(context.Background(), need(100), g, []answer.Failure{{Node: nodeOf(g), Kind: answer.Gone}, {Node: other, Kind: answer.Gone}},
		answer.Progress{Tokens: 90, StatesKept: true, Standbys: []uint64{s.Token}})
	if err == nil {
		t.Fatal("rescued by a dead node")
	}
	if left := w.room(other); left != Sellable(1000)-100 {
		t.Errorf("%d cells are left at %s", left, other)
	}
	w.d.Dismiss(s.Token)
	w.d.Dismiss(s.Token)
	w.d.Release(g)
	w.idle(t)
}

// Shadows take what nobody needs, and go when somebody does.
func TestAStandbyGivesWay(t *testing.T) {
	w := newWorld(Config{}, copies(2), 2, 1000)
	g := w.choose(t, 100)
	if _, err := w.standby(g, 501); !errors.Is(err, ErrNoStandby) {
		t.Errorf("more than half of a node's cells: %v", err)
	}
	s, err := w.standby(g, 100)
	if err != nil {
		t.Fatal(err)
	}
	if s.Revoked.Err() != nil {
		t.Fatal("revoked although nobody wants the room")
	}
	big := w.choose(t, Sellable(1000)-100) // there is room beside the shadow
	if s.Revoked.Err() != nil {
		t.Fatal("revoked although everybody found room")
	}
	woken := w.d.Changed()
	if _, err := w.d.Choose(context.Background(), need(Sellable(1000)-50)); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	if s.Revoked.Err() == nil {
		t.Error("somebody found no room, and the shadow stays")
	}
	w.d.Dismiss(s.Token)
	if !changed(woken) {
		t.Error("who waits was not told of the room")
	}
	w.d.Release(g)
	w.d.Release(big)
	w.idle(t)
}

// A node that is busy takes no shadow, and one that gets busy loses it.
func TestAStandbyLeavesABusyNode(t *testing.T) {
	w := newWorld(Config{}, copies(2), 2, 100_000)
	g := w.choose(t, 10)
	s, err := w.standby(g, 10)
	if err != nil {
		t.Fatal(err)
	}
	grants := []answer.Grant{g}
	for s.Revoked.Err() == nil && len(grants) < 100 {
		grants = append(grants, w.choose(t, 10))
	}
	if len(grants) < crowdedFrom || len(grants) > 2*crowdedFrom {
		t.Errorf("revoked when %d answers ran", len(grants))
	}
	if _, err := w.standby(g, 10); !errors.Is(err, ErrNoStandby) {
		t.Errorf("a busy node took a shadow: %v", err)
	}
	w.d.Dismiss(s.Token)
	for _, g := range grants {
		w.d.Release(g)
	}
	w.idle(t)
}

// Nobody else holds the layers: there is no place, and no shadow.
func TestNoStandbyWithoutAHolder(t *testing.T) {
	w := newWorld(Config{}, copies(1), 1, 1000)
	if _, err := w.standby(w.choose(t, 10), 10); !errors.Is(err, ErrNoStandby) {
		t.Error(err)
	}
}
