package answer

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/stage"
)

// suspecting is a swarm whose pool notes what is suspected, and when.
type suspecting struct {
	*fakeSwarm
	mu    sync.Mutex
	began time.Time
	heard []string
	kill  bool // what is suspected turns out to be silent
}

func (s *suspecting) Suspect(node string) {
	s.mu.Lock()
	s.heard = append(s.heard, fmt.Sprint(node, " after ", time.Since(s.began)))
	s.mu.Unlock()
	if s.kill {
		s.fakeSwarm.mu.Lock()
		n := s.fakeSwarm.nodes[node]
		n.down = true
		n.die(ErrSilence)
		s.fakeSwarm.mu.Unlock()
	}
}

// delayed answers, with one step of b's that takes so long.
func (s *suspecting) delayed(t *testing.T, takes time.Duration) (got, want []int32) {
	t.Helper()
	j := job(40, 24)
	s.onStep = func(node string, step stage.Step) {
		if node == "b" && step.Position == 50 {
			s.mu.Lock()
			s.began = time.Now()
			s.mu.Unlock()
			n := s.fakeSwarm.nodes["b"]
			select {
			case <-time.After(takes):
			case <-n.ctx.Done():
			}
		}
	}
	r := s.runner(Limits{})
	r.Opener = s
	got, _, err := generate(t, r, j, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got, whole(t, j)
}

func TestALateStepIsSuspectedOnce(t *testing.T) {
	for _, c := range []struct {
		usual, takes time.Duration
		want         []string
	}{
		{time.Millisecond, 90 * time.Millisecond, nil}, // a moment of a busy machine
		{time.Millisecond, 900 * time.Millisecond, []string{"b after 100ms"}},
		{100 * time.Millisecond, 280 * time.Millisecond, nil},
		{100 * time.Millisecond, 900 * time.Millisecond, []string{"b after 300ms"}},
		{0, 900 * time.Millisecond, []string{"b after 500ms"}}, // nothing is known
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &suspecting{fakeSwarm: threeStages()}
			s.usual = c.usual
			got, want := s.delayed(t, c.takes)
			synctest.Wait()
			if !slices.Equal(s.heard, c.want) || len(s.events) != 0 || !slices.Equal(got, want) {
				t.Errorf("usually %v, now %v: suspected %q, want %q; events %v", c.usual, c.takes, s.heard, c.want, s.events)
			}
		})
	}
}

// The answer voices its suspicion, the data plane finds the node silent, the answer
// goes on elsewhere: long before its own patience is over.
func TestASuspectedNodeThatIsSilentIsLeftAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &suspecting{fakeSwarm: threeStages(), kill: true}
		s.usual, s.patience = time.Millisecond, 2*time.Second
		got, want := s.delayed(t, time.Hour)
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if len(s.events) != 1 || s.events[0].Node != "b" || s.events[0].Gap != lateFloor {
			t.Errorf("events %+v, want b to be left after %v", s.events, lateFloor)
		}
	})
}
