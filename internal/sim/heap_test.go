package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// The agenda against sorting: by time, then in the order of making, also while
// events come and go.
func TestAgendaKeepsTime(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	var a agenda
	var waiting []event
	least := func() event {
		i := 0
		for k := range waiting {
			if c := cmp.Or(cmp.Compare(waiting[k].at, waiting[i].at), cmp.Compare(waiting[k].seq, waiting[i].seq)); c < 0 {
				i = k
			}
		}
		e := waiting[i]
		waiting = slices.Delete(waiting, i, i+1)
		return e
	}
	for range 20_000 {
		if len(waiting) == 0 || len(waiting) < 200 && chance.IntN(2) == 0 {
			e := event{at: chance.Int64N(50), who: int32(chance.IntN(9))}
			e.seq = a.made
			waiting = append(waiting, e)
			a.add(e)
			continue
		}
		if got, want := a.next(), least(); got != want {
			t.Fatalf("next is %+v, want %+v", got, want)
		}
	}
}

func TestAgendaSurvivesItsCounterWrapping(t *testing.T) {
	a := agenda{made: 1<<32 - 2}
	for who := range int32(4) {
		a.add(event{at: 7, who: who})
	}
	for who := range int32(4) {
		if e := a.next(); e.who != who {
			t.Fatalf("event %d comes in place of %d", e.who, who)
		}
	}
}
