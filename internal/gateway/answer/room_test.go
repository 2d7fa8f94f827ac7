package answer

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// smallPortions makes answers of a few tokens grow often.
var smallPortions = Limits{Chunk: 16, Portion: 4}

func TestPortions(t *testing.T) {
	l := Limits{}.withDefaults()
	for _, c := range []struct {
		most  int
		rooms []int
	}{
		{1, []int{1}}, {100, []int{100}}, {256, []int{256}}, {300, []int{256, 300}},
		{5000, []int{256, 512, 1024, 2048, 3072, 4096, 5000}},
	} {
		n := l.needOf(job(10, c.most))
		var rooms []int
		for {
			rooms = append(rooms, n.Room()-10)
			if n.Next == 0 {
				break
			}
			n = l.grown(n)
		}
		if !slices.Equal(rooms, c.rooms) {
			t.Errorf("at most %d tokens: room for %v, want %v", c.most, rooms, c.rooms)
		}
	}
}

// An answer grows in portions on all its nodes, and is the same as one that had
// its room from the beginning. No token is computed without a cell: the fake nodes
// refuse that.
func TestAnAnswerGrows(t *testing.T) {
	j := job(40, 50)
	want := whole(t, j)
	f := threeStages()
	got, a, err := generate(t, f.runner(smallPortions), j, nil)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("got %v, %v, want %v", got, err, want)
	}
	if !slices.Equal(f.room.grown, []int{48, 56, 72, 88, 90}) || len(f.room.given) != 0 || a.Rescues() != 0 {
		t.Errorf("grown to %v, gave way %d times, %d rescues", f.room.grown, len(f.room.given), a.Rescues())
	}
	if n := f.rowsOf("b"); n != 89 {
		t.Errorf("%d rows were computed, want each of 89 once", n)
	}
}

// A node that does not know how gets its stage opened anew.
func TestAnOldNodeOpensAStageAnew(t *testing.T) {
	j := job(40, 50)
	want := whole(t, j)
	f := threeStages()
	f.room.old = map[string]bool{"b": true, "c": true}
	got, a, err := generate(t, f.runner(smallPortions), j, nil)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("got %v, %v, want %v", got, err, want)
	}
	if a.Rescues() != 0 || len(f.events) != 0 || f.rowsOf("a") != 89 || f.rowsOf("b") <= 89 {
		t.Errorf("%d rescues, events %v, %d and %d rows", a.Rescues(), f.events, f.rowsOf("a"), f.rowsOf("b"))
	}
}

// An answer that finds no room leaves all nodes and goes on by replay: the same
// text, and no rescue.
func TestAnAnswerGivesWay(t *testing.T) {
	j := job(40, 50)
	want := whole(t, j)
	for name, narrow := range map[string]func(f *fakeSwarm){
		"the books have no room": func(f *fakeSwarm) { f.room.full = 2 },
		"a node has none":        func(f *fakeSwarm) { f.room.stingy = map[string]int{"b": growTries} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := threeStages()
				narrow(f)
				got, a, err := generate(t, f.runner(smallPortions), j, nil)
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("got %v, %v, want %v", got, err, want)
				}
				if len(f.room.given) == 0 || a.Rescues() != 0 {
					t.Errorf("gave way %d times, %d rescues", len(f.room.given), a.Rescues())
				}
				for _, e := range f.events {
					if e.Kind != "gave way" {
						t.Errorf("event %+v", e)
					}
				}
				for _, n := range f.room.given {
					if !n.Begun || n.Rescue || n.Room() < n.PromptTokens+4 {
						t.Errorf("waited with %+v", n)
					}
				}
				if len(f.grants) != 0 {
					t.Errorf("grants %v are left", f.grants)
				}
			})
		})
	}
}

// A node that frees what another answer had a moment later is asked again, and
// nobody gives way.
func TestANodeThatIsLateIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeStages()
		f.room.stingy = map[string]int{"c": growTries - 1}
		j := job(40, 20)
		got, _, err := generate(t, f.runner(smallPortions), j, nil)
		if want := whole(t, j); err != nil || !slices.Equal(got, want) || len(f.room.given) != 0 {
			t.Errorf("got %v, %v, want %v; gave way %d times", got, err, want, len(f.room.given))
		}
	})
}

// Waiting in vain is a loss that says why.
func TestAnAnswerThatWaitsInVainIsLost(t *testing.T) {
	f := threeStages()
	f.room.full, f.room.lost = 1, errors.Join(ErrRefused, errors.New("waited five minutes"))
	j := job(40, 50)
	got, _, err := generate(t, f.runner(smallPortions), j, nil)
	if !errors.Is(err, ErrNoRoom) || errors.Is(err, ErrRefused) || len(got) != 4 {
		t.Errorf("%d tokens, %v", len(got), err)
	}
	if n := len(f.events); n != 2 || f.events[1].Kind != "lost" {
		t.Errorf("events %+v", f.events)
	}
	if len(f.grants) != 0 {
		t.Errorf("grants %v are left", f.grants)
	}
}

// Nodes die at every token while an answer grows and gives way.
func TestDeathsWhileAnswersGrow(t *testing.T) {
	j := job(40, 30)
	want := whole(t, j)
	for _, way := range []RescueKind{Splice, Copy, Reconnect} {
		for at := range j.MaxTokens {
			synctest.Test(t, func(t *testing.T) {
				f := threeStages()
				f.copies = way == Copy
				strike := f.kill
				if way == Reconnect {
					strike = f.cut
				}
				f.room.full = at % 3
				f.room.old = map[string]bool{"c": at%4 == 0}
				got, a, err := generate(t, f.runner(smallPortions), j, func(i int) {
					if i == at {
						strike("b")
					}
				})
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("%s, death at %d: got %v, %v, want %v", way, at, got, err, want)
				}
				if a.Rescues() > 1 || len(f.grants) != 0 {
					t.Errorf("%s, death at %d: %d rescues, grants %v", way, at, a.Rescues(), f.grants)
				}
			})
		}
	}
}

// A shadow has the room of its answer, and ends when there is none to spare.
func TestAShadowGrows(t *testing.T) {
	for _, narrow := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := simplePlaces()
			p.narrow = narrow
			after, _ := shaded(t, threeStages(), p, "b", Limits{Portion: 12}, nil)
			if got := after("b2"); narrow == (got <= 64+4) {
				t.Errorf("narrow %v: b2 computed %d rows for 4 tokens", narrow, got)
			}
			if len(p.wide) == 0 {
				t.Error("no shadow grew")
			}
		})
	}
}

// An answer whose room an older one needs leaves between two tokens.
func TestAnAnswerWhoseRoomIsWantedGivesWay(t *testing.T) {
	j := job(40, 30)
	want := whole(t, j)
	for at := range j.MaxTokens {
		f := threeStages()
		f.room.wanted = make(chan struct{})
		got, a, err := generate(t, f.runner(smallPortions), j, func(i int) {
			if i == at {
				close(f.room.wanted)
				f.room.wanted = nil
			}
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("wanted before token %d: got %v, %v, want %v", at, got, err, want)
		}
		if len(f.room.given) != 1 || a.Rescues() != 0 || len(f.grants) != 0 {
			t.Errorf("wanted before token %d: gave way %d times, %d rescues, grants %v", at, len(f.room.given), a.Rescues(), f.grants)
		}
	}
}
