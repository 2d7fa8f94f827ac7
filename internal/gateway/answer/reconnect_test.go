package answer

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"hecate/internal/stage"
)

// breaking is a swarm of whose connections to node b so many break while they are
// being used again; then the node is dead or lives.
type breaking struct {
	*fakeSwarm
	left int
	dead bool
}

func (f *breaking) Reopen(ctx context.Context, node string, opening []byte) (Session, error) {
	switch {
	case node == "b" && f.left > 0:
		f.left--
		s, err := f.Open(ctx, node, opening, true)
		f.cut(node)
		return s, err
	case node == "b" && f.dead:
		f.kill(node)
	}
	return f.fakeSwarm.Reopen(ctx, node, opening)
}

// All connections to a node break at once, and the answer meets one after the
// other: it goes on where the state is, or elsewhere once nobody is there.
func TestConnectionsThatBreakOneAfterTheOther(t *testing.T) {
	for _, c := range []struct {
		left int
		dead bool
		want RescueKind
	}{
		{0, false, Reconnect}, {3, false, Reconnect}, {reconnects - 1, false, Reconnect},
		{reconnects + 5, false, Splice}, // it cannot be used, whatever it is
		{0, true, Splice}, {3, true, Splice},
	} {
		f, j := &breaking{threeStages(), c.left, c.dead}, job(40, 24)
		r := f.runner(Limits{})
		r.Opener = f
		got, a, err := generate(t, r, j, func(i int) {
			if i == 10 {
				f.cut("b")
			}
		})
		if err != nil || !slices.Equal(got, whole(t, j)) {
			t.Fatalf("%+v: %v, got %v", c, err, got)
		}
		if a.Rescues() != 1 || f.events[0].Rescue != c.want {
			t.Errorf("%+v: rescues %d, %+v", c, a.Rescues(), f.events)
		}
		if replayed := f.events[0].Replay; (replayed > 0) != (c.want == Splice) {
			t.Errorf("%+v: %d rows replayed", c, replayed)
		}
	}
}

// A process that died and was started again before anybody looked is no living node
// with its state: it is fed again.
func TestAProcessThatComesBackAtOnceIsRevived(t *testing.T) {
	f, j := threeStages(), job(40, 24)
	got, a, err := generate(t, f.runner(Limits{}), j, func(i int) {
		if i == 10 {
			f.restart("b")
		}
	})
	if err != nil || !slices.Equal(got, whole(t, j)) {
		t.Fatalf("%v, got %v", err, got)
	}
	if a.Rescues() != 1 || f.events[0].Rescue != Revival || f.events[0].Replay == 0 {
		t.Errorf("rescues %d, %+v", a.Rescues(), f.events)
	}
}

// A prompt that kills nodes is found out, however soon they come back.
func TestAQueryOfDeathThoughNodesComeBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, j := threeStages(), job(40, 24)
		deaths := 0
		f.onStep = func(node string, s stage.Step) {
			if node == "b" && s.Position+s.Rows() > 45 {
				deaths++
				f.restart("b")
			}
		}
		_, _, err := generate(t, f.runner(Limits{}), j, nil)
		if !errors.Is(err, ErrQueryOfDeath) || deaths != 2 {
			t.Errorf("%d deaths, then %v", deaths, err)
		}
	})
}

// The client goes while nobody knows yet whether the node is there.
func TestTheClientGoesWhileTheNodeIsLookedFor(t *testing.T) {
	f, j := threeStages(), job(40, 24)
	ctx, gone := context.WithCancel(t.Context())
	r := f.runner(Limits{})
	r.Opener = waiting{f, gone}
	a, err := r.Start(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	f.cut("b")
	if _, err := a.Next(); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	a.Close()
	if len(f.grants) != 0 || len(f.events) != 0 {
		t.Errorf("reservations %v, events %+v", f.grants, f.events)
	}
}

// waiting is an opener that finds nothing out.
type waiting struct {
	*fakeSwarm
	gone context.CancelFunc
}

func (w waiting) Reopen(ctx context.Context, _ string, _ []byte) (Session, error) {
	w.gone()
	<-ctx.Done()
	return nil, ctx.Err()
}

// unreachable is a swarm none of whose broken connections can be made again for now,
// though the nodes live and keep what they have.
type unreachable struct{ *fakeSwarm }

func (u unreachable) Reopen(context.Context, string, []byte) (Session, error) {
	return nil, ErrNoConnection
}

// What an answer left at a node that lives is not kept there for nobody: neither when
// it went on elsewhere, nor when its client left in the middle of the rescue.
func TestNothingIsKeptForAnAnswerThatIsOver(t *testing.T) {
	j := job(40, 24)
	for _, stays := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := threeStages()
			r := f.runner(Limits{})
			ctx, gone := context.WithCancel(t.Context())
			if r.Opener = (unreachable{f}); !stays {
				r.Opener = waiting{f, gone}
			}
			a, err := r.Start(ctx, j)
			if err != nil {
				t.Fatal(err)
			}
			for i := range j.MaxTokens {
				switch i {
				case 10:
					f.cut("b")
				case 15:
					f.cut("c") // it draws tokens
				}
				if _, err = a.Next(); err != nil {
					break
				}
			}
			if stays != (err == nil) {
				t.Errorf("stays %v: %v", stays, err)
			}
			a.Close()
			synctest.Wait()
			for name, n := range f.nodes {
				if len(n.kept) != 0 {
					t.Errorf("stays %v: %s still keeps %d states", stays, name, len(n.kept))
				}
			}
			gone()
		})
	}
}

// crowded is a swarm whose node b2 has no room for a while.
type crowded struct {
	*fakeSwarm
	times int
}

func (c *crowded) Open(ctx context.Context, node string, opening []byte, rescue bool) (Session, error) {
	if node == "b2" && c.times > 0 {
		c.times--
		return nil, &stage.Error{Code: stage.CodeNoCells}
	}
	return c.fakeSwarm.Open(ctx, node, opening, rescue)
}

func (c *crowded) Rescue(ctx context.Context, n Need, g Grant, failed []Failure, p Progress) (Grant, RescueKind, error) {
	if failed[0].Node == "b2" {
		return g, Again, nil
	}
	return c.fakeSwarm.Rescue(ctx, n, g, failed, p)
}

// A death before the first token stays one that was survived, also when the node that
// takes over has no room at first.
func TestADeathThatWaitsForRoomIsTold(t *testing.T) {
	f, j := &crowded{threeStages(), 3}, job(40, 24)
	f.onStep = func(node string, _ stage.Step) {
		if node == "b" {
			f.kill("b")
		}
	}
	r := f.runner(Limits{})
	r.Router, r.Opener = f, f
	got, a, err := generate(t, r, j, nil)
	if err != nil || !slices.Equal(got, whole(t, j)) {
		t.Fatalf("%v, got %v", err, got)
	}
	if a.Rescues() != 1 || len(f.events) != 1 || f.events[0].Node != "b" || f.events[0].Rescue != Reroute {
		t.Errorf("%d rescues, %+v", a.Rescues(), f.events)
	}
}
