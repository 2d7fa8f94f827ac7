package answer

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/stage"
)

// deaf is a swarm whose node x accepts no stage, and does not say so.
type deaf struct{ *fakeSwarm }

func (d deaf) Open(ctx context.Context, node string, opening []byte, rescue bool) (Session, error) {
	if node == "x" {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return d.fakeSwarm.Open(ctx, node, opening, rescue)
}

// A second try that cannot even begin holds the first one up by nothing.
func TestAHedgeThatDoesNotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, j := threeStages(), job(5, 8)
		f.usual, f.patience = 10*time.Millisecond, time.Minute
		f.onStep = func(node string, s stage.Step) {
			if node == "b" && s.Position == 0 {
				time.Sleep(hedgeFloor + 200*time.Millisecond)
			}
		}
		r := f.runner(Limits{})
		r.Opener = deaf{f}
		a, err := r.Start(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		a, token, err := a.First()
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > hedgeFloor+300*time.Millisecond {
			t.Errorf("the first token came after %s", d)
		}
		got := []int32{token.ID}
		for range j.MaxTokens - 1 {
			token, err := a.Next()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, token.ID)
		}
		if want := whole(t, j); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		a.Close()
		synctest.Wait()
		if len(f.grants) != 0 || len(f.events) != 0 {
			t.Errorf("reservations %v, events %v", f.grants, f.events)
		}
	})
}

// Of two tries one fails; nothing is lost, and nobody is told that it were. When both
// fail, one answer is lost.
func TestAFailedTryIsNoLoss(t *testing.T) {
	for _, both := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f, j := threeStages(), job(5, 8)
			clear(f.spares)
			f.usual, f.patience = 10*time.Millisecond, time.Minute
			f.onStep = func(node string, s stage.Step) {
				switch {
				case node == "b" && s.Position == 0:
					time.Sleep(hedgeFloor + 100*time.Millisecond)
					f.kill("b")
				case node == "y" && s.Position == 0:
					time.Sleep(time.Minute / 2)
					if both {
						f.kill("y")
					}
				}
			}
			a, err := f.runner(Limits{}).Start(t.Context(), j)
			if err != nil {
				t.Fatal(err)
			}
			a, _, err = a.First()
			a.Close()
			var kinds []string
			for _, e := range f.events {
				kinds = append(kinds, e.Kind)
			}
			want := []string{"rescued"}
			if both {
				want = []string{"lost"}
			}
			if (err != nil) != both || !slices.Equal(kinds, want) {
				t.Errorf("both %v: %v, events %+v", both, err, f.events)
			}
			if len(f.grants) != 0 {
				t.Errorf("reservations %v", f.grants)
			}
		})
	}
}
