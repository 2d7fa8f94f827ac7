package answer

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/stage"
	"hecate/swarm"
)

// stately is a swarm whose nodes take their time for each answer of theirs, from
// some moment on.
type stately struct {
	*fakeSwarm
	slow    atomic.Bool
	only    string // of sessions with this in their name
	waiting bool   // nobody finds out whether a node is still there
}

const stateliness = 10 * time.Second // less than the patience with them

func (s *stately) Open(ctx context.Context, node string, opening []byte, rescue bool) (Session, error) {
	o, err := stage.DecodeOpen(opening)
	if err != nil {
		return nil, err
	}
	in, err := s.fakeSwarm.Open(ctx, node, opening, rescue)
	if err != nil {
		return nil, err
	}
	return statelySession{in, s, strings.Contains(o.Session, s.only)}, nil
}

func (s *stately) Reopen(ctx context.Context, node string, opening []byte) (Session, error) {
	if s.waiting {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return s.fakeSwarm.Reopen(ctx, node, opening)
}

type statelySession struct {
	Session
	swarm *stately
	is    bool
}

func (s statelySession) Recv(ctx context.Context) ([]byte, error) {
	if s.is && s.swarm.slow.Load() {
		select {
		case <-time.After(stateliness):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return s.Session.Recv(ctx)
}

// A client leaves, wherever his answer is: all that was held for him is given back,
// by the gateway and by every node that lives, within a second, however long the
// nodes would have gone on.
func TestAClientWhoLeavesIsForgottenWithinASecond(t *testing.T) {
	const before = 5 // tokens that come at once
	for name, c := range map[string]struct {
		prompt  int
		prepare func(*stately, *Runner)
		strike  func(*stately, *Answer) // once these have come
		after   time.Duration           // until he leaves; 0: in the middle of a step
		early   bool                    // shadows follow the prompt already
	}{
		"while stages are opened":                {prompt: 40, prepare: func(s *stately, _ *Runner) { s.slow.Store(true) }},
		"in the prefill":                         {prompt: 400, prepare: func(s *stately, _ *Runner) { s.slow.Store(true) }, after: 95 * time.Second},
		"in a step of one token":                 {prompt: 40, strike: func(s *stately, _ *Answer) { s.slow.Store(true) }},
		"while his node is looked for":           {prompt: 40, strike: func(s *stately, _ *Answer) { s.waiting = true; s.cut("b") }, after: time.Millisecond},
		"while nobody can take over":             {prompt: 40, strike: func(s *stately, _ *Answer) { s.spares = nil; s.kill("b") }},
		"while a substitute is opened":           {prompt: 40, strike: func(s *stately, _ *Answer) { s.kill("b"); s.slow.Store(true) }},
		"while a substitute is fed":              {prompt: 40, strike: func(s *stately, _ *Answer) { s.kill("b"); s.slow.Store(true) }, after: stateliness + time.Second},
		"while a shadow is opened":               {prompt: longPrompt, strike: func(s *stately, _ *Answer) { s.only = "+"; s.slow.Store(true) }},
		"while a shadow is fed":                  {prompt: longPrompt, strike: func(s *stately, _ *Answer) { s.only = "+"; s.slow.Store(true) }, after: stateliness + time.Second},
		"while a shadow of the prompt is opened": {prompt: longPrompt, early: true, prepare: func(s *stately, _ *Runner) { s.only = "+"; s.slow.Store(true) }, strike: func(*stately, *Answer) {}},
		"while a shadow of the prompt is fed":    {prompt: longPrompt, early: true, prepare: func(s *stately, _ *Runner) { s.only = "+"; s.slow.Store(true) }, strike: func(*stately, *Answer) {}, after: stateliness + time.Second},
		"before his answer is on trial": {prompt: 40, strike: func(_ *stately, a *Answer) {
			a.suspicions = []*suspicion{{rows: span{len(a.tokens) - 1, len(a.tokens)}, layers: swarm.Layers(0, 11), nodes: 2}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stately{fakeSwarm: threeStages()}
				s.patience = time.Minute
				places := simplePlaces()
				shade := longPrompt + 1
				if c.early {
					shade = shadeFrom
				}
				r := s.runner(Limits{Chunk: 16, ShadeFrom: shade, OpenTime: time.Minute, RescueTime: time.Hour})
				r.Opener, r.Standbys = s, places
				if err := r.trial.take(t.Context()); err != nil { // somebody else is
					t.Fatal(err)
				}
				if c.prepare != nil {
					c.prepare(s, r)
				}
				ctx, leave := context.WithCancel(t.Context())
				over := make(chan error, 1)
				go func() { over <- generateUntil(ctx, r, job(c.prompt, 60), before, func(a *Answer) { c.strike(s, a) }) }()
				time.Sleep(max(c.after, 3*time.Second))
				synctest.Wait()
				select {
				case err := <-over:
					t.Fatalf("it was over before: %v", err)
				default:
				}
				leave()
				left := time.Now()
				if err := <-over; !errors.Is(err, context.Canceled) {
					t.Errorf("it ended with %v", err)
				}
				if d := time.Since(left); d > time.Second {
					t.Errorf("it was over %s after the client left", d)
				}
				s.slow.Store(false) // what is told to nodes from here on they hear at once
				synctest.Wait()
				if len(s.grants) != 0 || len(places.taken) != 0 {
					t.Errorf("reserved are still %v, and %d places of shadows", s.grants, len(places.taken))
				}
				for node, n := range s.nodes {
					if len(n.kept) != 0 {
						t.Errorf("%s still keeps %d stages", node, len(n.kept))
					}
				}
				if len(s.events) != 0 {
					t.Errorf("what nobody waits for is told of: %+v", s.events)
				}
			})
		})
	}
}

// generateUntil computes tokens, calls strike once so many have come, and gives the
// error that ends it.
func generateUntil(ctx context.Context, r *Runner, j Job, tokens int, strike func(*Answer)) error {
	a, err := r.Start(ctx, j)
	if err != nil {
		return err
	}
	defer a.Close()
	for i := 0; ; i++ {
		if i == max(tokens, pacedTokens*min(1, len(j.Prompt)/longPrompt)) {
			strike(a)
		}
		if i == j.MaxTokens {
			<-ctx.Done() // the client has yet to read the end
			return context.Cause(ctx)
		}
		if _, err := a.Next(); err != nil {
			return err
		}
		if len(j.Prompt) >= longPrompt {
			time.Sleep(100 * time.Millisecond)
		}
	}
}
