package gateway

import (
	"testing"
	"time"

	"hecate/internal/control"
)

// A node that lives and has no connection for a while is out of reach; one that
// has one, that is suspect, or that started anew is not.
func TestWhoIsOutOfReach(t *testing.T) {
	member := func(id string, s control.Status, incarnation uint64) control.Member {
		return control.Member{ID: id, Status: s, Record: &control.NodeRecord{ID: id, Incarnation: incarnation}}
	}
	view := &control.View{Members: []control.Member{
		member("far", control.StatusAlive, 1), member("near", control.StatusAlive, 1), member("suspect", control.StatusSuspect, 1),
	}}
	var r reach
	groups := map[string]control.DataGroup{"far": {IP4: []string{"10.0.0.1:1"}}, "near": {}, "suspect": {}, "stranger": {}}
	r.follow(control.DataMap{Groups: groups})
	ready := func(id string) bool { return id == "near" }
	now := time.Unix(1000, 0)
	if lost := r.lost(now, view, ready); lost != nil {
		t.Errorf("at once: %v", lost)
	}
	if lost := r.lost(now.Add(reachWait-1), view, ready); lost != nil {
		t.Errorf("too early: %v", lost)
	}
	lost := r.lost(now.Add(reachWait), view, ready)
	if len(lost) != 1 || lost[0].ID != "far" {
		t.Fatalf("out of reach: %v, want far", lost)
	}
	r.give(now, lost[0])
	if !r.unreachable(&view.Members[0]) || r.unreachable(&view.Members[1]) || !r.reversed("far") {
		t.Error("far is not known as out of reach, or near is")
	}
	groups["far"] = control.DataGroup{Reverse: true}
	r.follow(control.DataMap{Groups: groups})
	if lost := r.lost(now.Add(time.Hour), view, ready); lost != nil {
		t.Errorf("found out of reach again: %v", lost)
	}
	again := member("far", control.StatusAlive, 2)
	if r.unreachable(&again) {
		t.Error("a new start is not tried")
	}
	groups["far"] = control.DataGroup{IP4: []string{"10.0.0.2:1"}}
	r.follow(control.DataMap{Groups: groups})
	if r.reversed("far") {
		t.Error("a node that is dialled still counts as out of reach")
	}
}

// A connection that comes back in time starts the wait anew.
func TestAShortLossIsNoLackOfReach(t *testing.T) {
	view := &control.View{Members: []control.Member{{ID: "a", Status: control.StatusAlive, Record: &control.NodeRecord{ID: "a"}}}}
	var r reach
	r.follow(control.DataMap{Groups: map[string]control.DataGroup{"a": {}}})
	now, up := time.Unix(1000, 0), false
	for i := range 10 {
		up = i%3 == 2
		if lost := r.lost(now.Add(time.Duration(i)*time.Second), view, func(string) bool { return up }); lost != nil {
			t.Fatalf("second %d: %v", i, lost)
		}
	}
}

// A node out of reach is tried again, less and less often; two answers in a row
// bring it back, and one that was lost again after that has to wait.
func TestANodeComesBackIntoReach(t *testing.T) {
	m := &control.Member{ID: "a", Record: &control.NodeRecord{ID: "a", Incarnation: 7}}
	var r reach
	now := time.Unix(1000, 0)
	r.give(now, m)
	if due := r.due(now.Add(knockFirst - 1)); due != nil {
		t.Errorf("too early: %v", due)
	}
	pause := knockFirst
	for range 8 {
		now = now.Add(pause)
		if due := r.due(now); len(due) != 1 {
			t.Fatalf("after %s: %v", pause, due)
		}
		if due := r.due(now); due != nil {
			t.Errorf("twice at once: %v", due)
		}
		if r.tried(now, "a", false) {
			t.Error("silence brings it back")
		}
		pause = min(2*pause, knockMost)
	}
	now = now.Add(knockMost)
	if len(r.due(now)) != 1 || r.tried(now, "a", true) || !r.unreachable(m) {
		t.Error("one answer is enough")
	}
	now = now.Add(knockFirst)
	if len(r.due(now)) != 1 || r.tried(now, "a", false) {
		t.Error("an answer is not confirmed at once")
	}
	now = now.Add(2 * knockFirst)
	r.due(now)
	r.tried(now, "a", true)
	now = now.Add(knockFirst)
	if len(r.due(now)) != 1 || !r.tried(now, "a", true) || r.unreachable(m) || r.reversed("a") {
		t.Error("two answers in a row are not enough")
	}
	r.give(now, m)
	if due := r.due(now.Add(knockMost - 1)); due != nil {
		t.Errorf("lost again, and tried at once: %v", due)
	}
	m.Record.Incarnation++
	r.give(now, m)
	if due := r.due(now.Add(knockFirst)); len(due) != 1 {
		t.Error("a new start has to wait for the old one's sins")
	}
}
