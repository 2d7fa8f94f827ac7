package bench

import (
	"math/rand/v2"
)

// scene is one question and how it is sampled.
type scene struct {
	question int
	seeded   bool // temperature 0.8 and a seed, otherwise greedy
}

// trial is a failure at one place of one answer.
type trial struct {
	scene
	action string // kill, stop or drop
	stage  int    // index into the route
	token  int    // generated tokens, 0 is the first; never the first: it has no gap before it
}

// drawer draws trials, the same ones for the same seed.
type drawer struct {
	r       *rand.Rand
	actions []string
	stages  int
	tokens  int
	drawn   int
}

func newDrawer(o FailoverOptions, actions []string, stages int) *drawer {
	return &drawer{r: rand.New(rand.NewPCG(o.Seed, uint64(len(actions)))), actions: actions, stages: stages, tokens: o.Tokens}
}

// next is the next trial. Actions take turns, so do greedy and seeded sampling;
// stage and token are random.
func (d *drawer) next(questions int) trial {
	n := d.drawn
	d.drawn++
	return trial{
		scene:  scene{question: d.r.IntN(questions), seeded: n/len(d.actions)%2 == 1},
		action: d.actions[n%len(d.actions)],
		stage:  d.r.IntN(d.stages),
		token:  1 + d.r.IntN(max(1, d.tokens-2)),
	}
}
