package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"hecate/internal/bench/measure"
	"hecate/internal/report"
)

// theatre is a swarm in which trials are played, and the answers as they are
// when nothing fails.
type theatre struct {
	*local
	subject *subject
	options FailoverOptions
	known   map[scene]string // undisturbed texts
	calm    []time.Duration  // the longest gaps of undisturbed answers
}

// shortQuestions have long answers.
var shortQuestions = []string{
	"Tell me a long story about a fox and a lantern.",
	"What is the capital of France, and what else do you know about it?",
	"Tell me a long story about a girl who found a boat.",
	"Count from one to fifty in words.",
}

// chats says that questions are words: the demo model answers them, others are
// asked in tokens.
func (t *theatre) chats() bool { return t.options.Model == ModelDemo && t.options.Context == 0 }

// questions is how many different ones are asked; long ones take long.
func (t *theatre) questions() int {
	switch {
	case t.chats():
		return len(shortQuestions)
	case t.options.Context > shortPrompt:
		return 1
	}
	return 4
}

func (t *theatre) ask(ctx context.Context, s scene) (*reply, error) {
	q := question{tokens: t.options.Tokens, seed: 7}
	if s.seeded {
		q.temperature = 0.8
	}
	if t.chats() {
		q.text = shortQuestions[s.question]
	} else {
		q.prompt = t.subject.prompt(t.options.Context, uint64(s.question))
	}
	return t.local.ask(ctx, t.subject, q)
}

// stages is the number of stages that every copy has at least.
func (t *theatre) stages(ctx context.Context) (int, error) {
	st, err := t.status(ctx)
	if err != nil {
		return 0, err
	}
	least := 0
	for _, m := range st.Models {
		for _, p := range m.Pipelines {
			if least == 0 || len(p.Stages) < least {
				least = len(p.Stages)
			}
		}
	}
	if least == 0 {
		return 0, errors.New("the plan has no copy")
	}
	return least, nil
}

// rehearse has every answer once without a failure, twice asked to be sure that
// it is always the same.
func (t *theatre) rehearse(ctx context.Context) error {
	for q := range t.questions() {
		for _, seeded := range []bool{false, true} {
			s := scene{q, seeded}
			for range 2 {
				t.options.Progress(fmt.Sprintf("undisturbed answer %d of %d", len(t.calm)+1, 4*t.questions()))
				r, err := t.ask(ctx, s)
				if err != nil {
					return err
				}
				if r.flaw != "" {
					return fmt.Errorf("an undisturbed answer broke: %s", r.flaw)
				}
				if text, asked := t.known[s]; asked && text != r.text {
					return fmt.Errorf("question %d has two undisturbed answers: %q and %q", q, text, r.text)
				}
				t.known[s] = r.text
				gap, _ := timeline{at: r.at}.gap()
				t.calm = append(t.calm, gap)
			}
		}
	}
	return nil
}

// tally collects what trials show.
type tally struct {
	Outcome
	gaps          []time.Duration
	before, after []float64
}

// act plays trials until enough failures struck.
func (t *theatre) act(ctx context.Context, name string, draw *drawer) (Outcome, error) {
	sum := &tally{Outcome: Outcome{Rescues: map[string]int{}}}
	for sum.Answers < t.options.Runs {
		if sum.Missed > t.options.Runs {
			return sum.outcome(), fmt.Errorf("%d of %d failures did not strike: the routes have other stages than the plan", sum.Missed, sum.Missed+sum.Answers)
		}
		t.options.Progress(fmt.Sprintf("%s: answer %d of %d", name, sum.Answers+1, t.options.Runs))
		if err := t.play(ctx, draw.next(t.questions()), sum); err != nil {
			return sum.outcome(), err
		}
	}
	return sum.outcome(), nil
}

// outcome is what the trials so far come to.
func (s *tally) outcome() Outcome {
	s.Gaps = gapsOf(s.gaps)
	s.Before, s.After = measure.Median(s.before), measure.Median(s.after)
	return s.Outcome
}

// play makes one trial and waits until the swarm is whole again.
func (t *theatre) play(ctx context.Context, tr trial, sum *tally) error {
	then, err := t.status(ctx)
	if err != nil {
		return err
	}
	if err := t.arm(ctx, tr.stage, tr.token, tr.action); err != nil {
		return err
	}
	r, err := t.ask(ctx, tr.scene)
	if err != nil {
		return err
	}
	now, err := t.status(ctx)
	if err != nil {
		return err
	}
	sum.take(tr, r, t.known[tr.scene], rescued(then, now))
	node := nodeOf(r.route, tr.stage)
	pid := pidIn(then, node)
	if pid == 0 {
		return t.whole(ctx, "", 0)
	}
	if tr.action != "kill" {
		t.bury(pid)
	}
	if r.flaw == "" && r.rescues == 0 && tr.action == "kill" {
		return t.whole(ctx, "", 0) // nobody died
	}
	return t.whole(ctx, node, pid)
}

// bury kills a worker that was made to stop or to fall silent, for its
// supervisor to start a new one.
func (t *theatre) bury(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

// maxStories bounds how many failures are told in words.
const maxStories = 10

// take adds one trial.
func (s *tally) take(tr trial, r *reply, want string, kinds map[string]int) {
	if r.flaw == "" && r.rescues == 0 {
		s.Missed++
		return
	}
	s.Answers++
	for k, n := range kinds {
		s.Rescues[k] += n
	}
	if r.flaw != "" {
		s.Lost++
		s.tell("%s of stage %d at token %d, route %s: lost after %d events: %s", tr.action, tr.stage, tr.token, r.route, len(r.at), r.flaw)
		return
	}
	if r.text == want {
		s.Identical++
	} else {
		s.tell("%s of stage %d at token %d, route %s: %q instead of %q", tr.action, tr.stage, tr.token, r.route, r.text, want)
	}
	line := timeline{r.at, r.tokens}
	gap, index := line.gap()
	s.gaps = append(s.gaps, gap)
	before, after := line.split(index)
	if v := rate([]timeline{before}); v > 0 {
		s.before = append(s.before, v)
	}
	if v := rate([]timeline{after}); v > 0 {
		s.after = append(s.after, v)
	}
}

func (s *tally) tell(format string, args ...any) {
	if len(s.Stories) < maxStories {
		s.Stories = append(s.Stories, fmt.Sprintf(format, args...))
	}
}

// rescued counts the rescues between two looks, by kind.
func rescued(then, now report.Status) map[string]int {
	kinds := map[string]int{}
	for kind, n := range now.Answers.Rescues {
		if more := n - then.Answers.Rescues[kind]; more > 0 {
			kinds[kind] = int(more)
		}
	}
	return kinds
}

// nodeOf is the node of a stage in a route as the header prints it; "" when
// there is none.
func nodeOf(route string, stage int) string {
	stages := strings.Split(route, "],")
	if stage >= len(stages) {
		return ""
	}
	node, _, ok := strings.Cut(stages[stage], "[")
	if !ok {
		return ""
	}
	return node
}

func pidIn(st report.Status, node string) int {
	for _, n := range st.Nodes {
		if n.ID == node {
			return n.PID
		}
	}
	return 0
}

// kinds lists rescues in words.
func (o Outcome) kinds() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(o.Rescues)) {
		parts = append(parts, fmt.Sprintf("%d %s", o.Rescues[k], k))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
