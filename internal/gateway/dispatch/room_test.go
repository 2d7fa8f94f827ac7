package dispatch

import (
	"errors"
	"testing"
	"time"

	"hecate/internal/control"
	"hecate/internal/gateway/answer"
	"hecate/swarm"
)

// Each report is compared with our own leases at that moment.
func TestRoom(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }
	for _, c := range []struct {
		name string
		do   func(r *room)
		now  int
		want int
	}{
		{"nothing said", func(r *room) {}, 0, 0},
		{"empty", func(r *room) { r.report(100, 100, at(0)) }, 0, 100},
		{"ours, not in the report yet", func(r *room) { r.report(100, 100, at(0)); r.take(30) }, 0, 70},
		{"ours, in the report", func(r *room) { r.take(30); r.report(100, 70, at(0)) }, 0, 70},
		{"ours and others'", func(r *room) { r.take(30); r.report(100, 50, at(0)) }, 0, 50},
		{"others' alone", func(r *room) { r.report(100, 80, at(0)) }, 0, 80},
		{"given back since", func(r *room) { r.take(30); r.report(100, 70, at(0)); r.give(30, at(10)) }, 10, 100},
		{"given back, the report still counts it", func(r *room) { r.take(30); r.give(30, at(0)); r.report(100, 70, at(100)) }, 100, 100},
		{"given back, the node keeps it", func(r *room) { r.take(30); r.give(30, at(0)); r.report(100, 70, at(500)) }, 500, 70},
		{"and gives it up", func(r *room) {
			r.take(30)
			r.give(30, at(0))
			r.report(100, 70, at(500))
			r.report(100, 100, at(600))
		}, 600, 100},
		{"a report that makes no sense", func(r *room) { r.report(100, 200, at(0)) }, 0, 100},
		{"oversold", func(r *room) { r.report(100, 100, at(0)); r.take(130) }, 0, 0},
		{"a smaller cache after a restart", func(r *room) { r.take(80); r.report(50, 50, at(0)) }, 0, 0},
		{"refused", func(r *room) { r.report(100, 100, at(0)); r.refuse(60, at(0)) }, 19, 59},
		{"refused a moment ago", func(r *room) { r.report(100, 100, at(0)); r.refuse(60, at(0)) }, 20, 100},
		{"refused twice at once", func(r *room) { r.report(100, 100, at(0)); r.refuse(60, at(0)); r.refuse(40, at(5)) }, 24, 39},
		{"refused again: for longer", func(r *room) { r.report(100, 100, at(0)); r.refuse(60, at(0)); r.refuse(60, at(30)) }, 69, 59},
		{"refused again much later", func(r *room) { r.report(100, 100, at(0)); r.refuse(60, at(0)); r.refuse(60, at(3000)) }, 3020, 100},
	} {
		var r room
		c.do(&r)
		if got := r.free(at(c.now)); got != c.want {
			t.Errorf("%s: %d cells free, want %d", c.name, got, c.want)
		}
	}
}

func TestRefusalsGetLongerUpToABound(t *testing.T) {
	var r room
	now := time.Unix(1000, 0)
	want := leastPause
	for range 12 {
		if got := r.refuse(10, now); got != want {
			t.Errorf("asked again after %s, want %s", got, want)
		}
		now = now.Add(want + 1)
		want = min(2*want, mostPause)
	}
}

func TestEndedLeasesAreForgotten(t *testing.T) {
	var r room
	now := time.Unix(1000, 0)
	for range 10000 {
		r.take(1)
		r.give(1, now)
		now = now.Add(time.Millisecond)
	}
	if len(r.ended) > 501 || cap(r.ended) > 2000 {
		t.Errorf("%d ended leases kept, room for %d", len(r.ended), cap(r.ended))
	}
}

// Each model has cells of its own: a small one beside a large one neither limits
// the large one nor takes from it.
func TestModelsHaveRoomOfTheirOwn(t *testing.T) {
	plan := copies(1)
	plan.Models = append(plan.Models, swarm.ModelSpec{ID: "small", Layers: layers})
	plan.Pipelines = append(plan.Pipelines, swarm.Pipeline{ID: 1, Model: "small", Stages: []swarm.Stage{on(0, 0, layers-1)}})
	w := newWorld(Config{}, plan, 1, 100)
	view := w.view()
	for i, id := range []string{"m", "small"} {
		cells := []int{1000, 100}[i]
		h := view.Members[0].Health
		h.Held = append(h.Held, control.HeldFragment{Model: id, Layers: swarm.Layers(0, layers-1), Cells: cells, FreeCells: cells})
	}
	h := view.Members[0].Health
	h.Sequence++
	h.State.Fragments = append(h.State.Fragments, swarm.Fragment{Model: "small", Layers: swarm.Layers(0, layers-1)})
	view.Nodes["n0"] = h.State
	w.d.SetView(view)

	small := need(80)
	small.Model = "small"
	choose := func(n answer.Need) (answer.Grant, error) { return w.d.Choose(t.Context(), n) }
	var grants []answer.Grant
	for _, n := range []answer.Need{need(400), small, need(400)} {
		g, err := choose(n)
		if err != nil {
			t.Fatalf("%d cells of %s: %v", n.Room(), n.Model, err)
		}
		grants = append(grants, g)
	}
	for _, n := range []answer.Need{need(400), small} {
		if _, err := choose(n); !errors.Is(err, ErrFull) {
			t.Errorf("%d cells of %s more: %v, want ErrFull", n.Room(), n.Model, err)
		}
	}
	w.d.Release(grants[1])
	if g, err := choose(small); err != nil {
		t.Error(err)
	} else {
		w.d.Release(g)
	}
	w.d.Release(grants[0])
	w.d.Release(grants[2])
	w.idle(t)
}

// Of a node that says whose cells are taken, our own ends hide nothing of what
// others have: an answer that gave way was told of room that was not there, again and
// again, because each time that it was refused its end hid as much.
func TestOwnEndsDoNotHideOthers(t *testing.T) {
	now := time.Unix(1000, 0)
	r := &room{}
	r.take(300)
	r.report(1000, 0, now)
	r.told(map[string]int{"one": 300, "two": 600, "three": 100}, "one")
	if free := r.free(now); r.foreign != 700 || free != 0 {
		t.Errorf("%d are taken by others and %d free, want 700 and none", r.foreign, free)
	}
	r.give(300, now)
	r.report(1000, 300, now)
	r.told(map[string]int{"two": 600, "three": 100}, "one")
	if free := r.free(now); r.foreign != 700 || free != 300 {
		t.Errorf("after our end %d are taken by others and %d free, want 700 and 300", r.foreign, free)
	}
	r.report(1000, 1000, now)
	if r.told(map[string]int{}, "one"); r.foreign != 0 {
		t.Errorf("%d are taken of an empty cache", r.foreign)
	}
}
