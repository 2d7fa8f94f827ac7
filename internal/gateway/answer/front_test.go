package answer

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/stage"
	"hecate/swarm"
)

// slowPrompt has a hundred chunks, enough for shadows and answer to find their turns.
const slowPrompt = 800

// slowly makes every row take a while at each node, half of it at those of shadows.
// Where they share processors with the answer, its steps take twice as long while one
// of theirs is computed.
func slowly(f *fakeSwarm, perRow time.Duration, shared bool) {
	var shadows atomic.Int32
	f.onStep = func(node string, s stage.Step) {
		took := time.Duration(s.Rows()) * perRow
		if strings.HasSuffix(node, "2") {
			shadows.Add(1)
			defer shadows.Add(-1)
			took /= 2
		} else if shared && shadows.Load() > 0 {
			took *= 2
		}
		time.Sleep(took)
	}
}

// firstToken computes a long prompt, and says how long it took and how many rows the
// shadow's place had computed by then. If victim is a node, it dies with the next token;
// replayed is what the substitute computed from then on.
func firstToken(t *testing.T, f *fakeSwarm, p *places, victim string) (took time.Duration, shadowed, replayed int) {
	t.Helper()
	j := job(slowPrompt, 3)
	r := f.runner(Limits{Chunk: 8, ShadeFrom: 32})
	r.Standbys = p
	began := time.Now()
	out, a, err := generate(t, r, j, func(i int) {
		if i == 1 {
			took, shadowed = time.Since(began), f.rowsOf("b2")
			if victim != "" {
				f.kill(victim)
			}
		}
	})
	if err != nil || !slices.Equal(out, whole(t, j)) {
		t.Fatalf("%v, %v", out, err)
	}
	if victim != "" && (a.Rescues() == 0 || a.Rescued()[a.Rescues()-1].Node != victim) {
		t.Errorf("%d rescues", a.Rescues())
	}
	return took, shadowed, f.rowsOf("b2") - shadowed
}

// A node that dies with the second token of a long prompt's answer has a shadow that
// followed the prompt: 64 positions are replayed at most.
func TestAShadowFollowsThePrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeStages()
		slowly(f, time.Millisecond, false)
		alone, none, _ := firstToken(t, f, newPlaces(nil), "")
		if none != 0 {
			t.Fatalf("%d rows without a place", none)
		}
		f = threeStages()
		slowly(f, time.Millisecond, false)
		took, _, replayed := firstToken(t, f, simplePlaces(), "b")
		if replayed > 64+2 {
			t.Errorf("b2 computed %d rows for 2 tokens", replayed)
		}
		if took > alone+alone/100 {
			t.Errorf("the first token came after %s, without shadows after %s", took, alone)
		}
	})
}

// A stage that dies while a prompt is computed is replaced at once, however far the
// first stage could go on by itself, and the prompt keeps its shadows.
func TestADeathWithinAPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeStages()
		slowly(f, time.Millisecond, false)
		alone, _, _ := firstToken(t, f, newPlaces(nil), "")
		f = threeStages()
		slowly(f, time.Millisecond, false)
		slow := f.onStep
		var once sync.Once
		f.onStep = func(node string, s stage.Step) {
			once.Do(func() { f.kill("c") })
			slow(node, s)
		}
		took, _, replayed := firstToken(t, f, simplePlaces(), "b")
		if took > alone+alone/10 {
			t.Errorf("the first token came after %s, without a death after %s", took, alone)
		}
		if replayed > 64+2 {
			t.Errorf("b2 computed %d rows for 2 tokens", replayed)
		}
	})
}

// Where shadows compete with the prompt, they leave it alone for the most part.
func TestAShadowDoesNotSlowThePrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeStages()
		slowly(f, time.Millisecond, true)
		alone, _, _ := firstToken(t, f, newPlaces(nil), "")
		const prompts = 8 // of which one or the other is not lucky
		all := time.Duration(0)
		for range prompts {
			f := threeStages()
			slowly(f, time.Millisecond, true)
			took, shadowed, _ := firstToken(t, f, simplePlaces(), "")
			if all += took; shadowed == 0 {
				t.Error("no shadow had a turn: the test shows nothing")
			}
		}
		if mean := all / prompts; mean > alone*6/5 {
			t.Errorf("the first token came after %s, without shadows after %s", mean, alone)
		}
	})
}

// The turns settle on as many chunks as the price allows, however much slower chunks
// grow.
func TestTurnsOfAPromptAndItsShadows(t *testing.T) {
	for name, c := range map[string]struct{ slowdown, least, most float64 }{
		"machines of their own": {0, 0.75, 0.9},
		"a little slower":       {0.02, 0.4, 0.9},
		"half as fast":          {1, 0.01, 0.06},
	} {
		var turn turns
		var g gate
		turn.begin(swarm.Reading{}, &g)
		fed, steps := 0, int64(0)
		const chunks = 600
		for i := range chunks {
			perRow := 1 + float64(i)/20
			if turn.fed {
				fed++
				steps++
				perRow *= 1 + c.slowdown
			}
			turn.take(perRow, steps, false, &g)
		}
		if share := float64(fed) / chunks; share < c.least || share > c.most {
			t.Errorf("%s: the shadows have %.2f of the chunks, want %.2f to %.2f", name, share, c.least, c.most)
		}
		turn.end(&g)
	}
}

// What one prompt showed the next one knows: where shadows slowed it much, they let a
// short one pass.
func TestTurnsAreRemembered(t *testing.T) {
	var known rivalry
	here, there := route(0, on("a", 0, 3), on("b", 4, 11)), route(1, on("a", 0, 3), on("c", 4, 11))
	known.note(here, swarm.Measured(1))
	known.note(here, swarm.Reading{}) // of a prompt too short to tell
	for _, c := range []struct {
		route swarm.Route
		waits int
	}{{here, 46}, {there, firstChunks}} {
		var turn turns
		var g gate
		turn.begin(known.of(c.route), &g)
		chunks := 0
		for ; !turn.fed; chunks++ {
			turn.take(1, 0, false, &g)
		}
		if chunks < c.waits || chunks > c.waits+4 {
			t.Errorf("%s: shadows waited for %d chunks, want about %d", c.route, chunks, c.waits)
		}
	}
}
