//go:build !noengine

package test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hecate/internal/gateway"
	"hecate/internal/report"
	"hecate/test/harness"
)

// settleWait bounds how long reports of nodes, and processes that end, may take
// to be seen on a busy machine.
const settleWait = 30 * time.Second

// rehearsal is a swarm in which failures are tried.
type rehearsal struct {
	*harness.Swarm
	rows  int64          // that each stage computes in an undisturbed answer of 64 tokens
	tries int            // trials made
	kept  int            // of them: a stage survived a splice, and its rows were counted
	drops bool           // boundary states are not kept, so that survivors compute again
	kinds map[string]int // rescues that they met, by kind
}

// rehearse starts a swarm and measures an undisturbed answer.
func rehearse(t *testing.T, args ...string) *rehearsal {
	t.Helper()
	s := harness.Up(t, append([]string{"--allow-chaos"}, args...)...)
	r := &rehearsal{Swarm: s, kinds: map[string]int{}}
	before := steady(s)
	route := s.Ask(harness.Story, limit64(nil)).Header.Get("X-Hecate-Route")
	after := steady(s)
	first := nodesOf(route)[0]
	r.rows = after[first] - before[first]
	if r.rows < 64 {
		t.Fatalf("%s computed %d rows for an answer of 64 tokens", first, r.rows)
	}
	t.Cleanup(func() {
		t.Logf("%d trials, rescues by kind: %v, lost %d; in %d a stage was seen to have survived a splice", r.tries, r.kinds, s.Status().Answers.Lost, r.kept)
	})
	return r
}

// arm arms failures that befall the next answer together.
func (r *rehearsal) arm(t *testing.T, orders ...gateway.ChaosOrder) {
	t.Helper()
	for i, o := range orders {
		o.Also = i > 0
		if code, _, body := r.Post(context.Background(), "/v1/swarm/chaos/arm", o); code != http.StatusOK {
			t.Fatalf("arm %+v: %d %s", o, code, body)
		}
	}
}

// trial is one answer in which nodes fail.
type trial struct {
	failures []gateway.ChaosOrder
	streamed bool
	more     map[string]any
	want     string // the text as it is without failures
	rescues  int    // at least; 0 counts as 1
}

func (x trial) String() string {
	var parts []string
	for _, f := range x.failures {
		who := fmt.Sprintf("stage %d", f.Stage)
		if f.Rescues > 0 {
			who += fmt.Sprintf(" after rescue %d", f.Rescues)
		}
		parts = append(parts, fmt.Sprintf("%s of %s before token %d", f.Action, who, f.AtToken))
	}
	return fmt.Sprintf("%s, streamed %v", strings.Join(parts, ", "), x.streamed)
}

// try makes one trial: the text is that of the undisturbed run, the client is told
// of the rescue, the processes that were to die are gone, and when the lost stage
// was spliced, the others computed each row once.
func (r *rehearsal) try(t *testing.T, x trial) {
	t.Helper()
	for range aims {
		if r.struck(t, x) {
			return
		}
	}
	t.Errorf("%s: %d times a second try was faster than the answer that was to be hurt", x, aims)
}

// aims is how often a trial is made again that showed nothing, as happens on a
// busy machine: the answer was over before what was done to it struck, or another
// one that had been asked for meanwhile was faster (a hedge).
const aims = 5

// struck makes the trial; false when it showed nothing.
func (r *rehearsal) struck(t *testing.T, x trial) bool {
	t.Helper()
	r.AwaitHealthy()
	// A silence before the first token starts a second try, whose rows count as well.
	counts := x.streamed && len(x.failures) == 1 && (x.failures[0].Action == "kill" || x.failures[0].AtToken > 0) && !r.drops
	var computed map[string]int64
	if counts {
		computed = steady(r.Swarm)
	}
	before := r.Status()
	r.arm(t, x.failures...)
	text, rescues, first, last := r.answer(t, x)
	if text != x.want {
		t.Errorf("%s: got %q, want %q", x, text, x.want)
	}
	kinds := rescued(before, r.Status())
	if kinds["hedge"] > 0 && rescues == 0 && x.failures[0].AtToken > 0 {
		return false
	}
	// A silence before the first token is overtaken by a second try: then nothing
	// was rescued, and only the counters tell.
	if n := rescues + kinds["hedge"]; n < max(1, x.rescues) {
		t.Errorf("%s: told of %d rescues, want %d (counted were %v)", x, rescues, max(1, x.rescues), kinds)
	}
	r.tries++
	for k, n := range kinds {
		r.kinds[k] += n
	}
	deaths := 0
	for _, f := range x.failures {
		if f.Action == "kill" {
			deaths++
		}
	}
	r.expectDeaths(x, before, deaths)
	if counts && maps.Equal(kinds, map[string]int{"splice": 1}) {
		r.expectNothingTwice(x, before, computed, first, last)
	}
	return true
}

// answer asks and gives the text, the number of rescues, and the routes before
// and after them. Of an answer that is not streamed only the last route is told.
func (r *rehearsal) answer(t *testing.T, x trial) (text string, rescues int, first, last string) {
	t.Helper()
	if !x.streamed {
		a := r.AskWith(t, harness.Story, x.more)
		return a.Text(), a.Hecate.Rescues, "", a.Hecate.Route
	}
	st, err := r.AskStream(context.Background(), harness.Story, x.more, nil)
	if err != nil || !st.Done || st.Broken != nil || st.Finish != "length" {
		t.Errorf("%s: %v, done %v, finish %q, %v", x, err, st.Done, st.Finish, st.Broken)
	}
	return st.Text, st.Rescues, st.Header.Get("X-Hecate-Route"), st.Route
}

// expectDeaths waits until so many processes are gone, no more and no fewer.
func (r *rehearsal) expectDeaths(x trial, before report.Status, deaths int) {
	r.T.Helper()
	gone := func() (n int) {
		for _, pid := range processesOf(before) {
			if harness.Gone(pid) {
				n++
			}
		}
		return n
	}
	r.Await(fmt.Sprintf("%s: %d old processes are gone", x, deaths), settleWait, func() bool { return gone() >= deaths })
	if n := gone(); n != deaths {
		r.T.Errorf("%s: %d processes died, want %d", x, n, deaths)
	}
}

func processesOf(st report.Status) (pids []int) {
	for _, n := range st.Nodes {
		pids = append(pids, n.PID)
	}
	return pids
}

// expectNothingTwice looks at the nodes all of whose stages survived: as many rows
// as their stages have positions, and those of stages that they took over. A row
// that was computed again would be one too many for ever. A stage that grew, when
// its node took over the layers beside it, is another stage and did not survive.
func (r *rehearsal) expectNothingTwice(x trial, before report.Status, computed map[string]int64, first, last string) {
	r.T.Helper()
	had, has := stagesOf(first), stagesOf(last)
	want, survived := map[string]int64{}, false
	for _, n := range before.Nodes {
		if harness.Gone(n.PID) || !subset(had[n.ID], has[n.ID]) {
			continue
		}
		want[n.ID] = computed[n.ID] + r.rows*int64(len(has[n.ID]))
		survived = survived || len(had[n.ID]) > 0
	}
	if survived {
		r.kept++
	}
	var got map[string]int64
	ok := r.Within(settleWait, func() bool {
		got = tokensOf(r.Swarm)
		maps.DeleteFunc(got, func(node string, _ int64) bool { _, asked := want[node]; return !asked })
		return maps.Equal(got, want)
	})
	if !ok {
		r.T.Errorf("%s: the survivors of a splice from %s to %s computed %v rows in all, want %v", x, first, last, got, want)
	}
}

// stagesOf gives the layers of each node in a route.
func stagesOf(route string) map[string][]string {
	stages := map[string][]string{}
	for _, part := range strings.Split(route, ",") {
		node, layers, _ := strings.Cut(part, "[")
		stages[node] = append(stages[node], layers)
	}
	return stages
}

func subset(small, large []string) bool {
	return !slices.ContainsFunc(small, func(s string) bool { return !slices.Contains(large, s) })
}

// rescued counts the rescues between two looks, by kind.
func rescued(before, after report.Status) map[string]int {
	kinds := map[string]int{}
	for kind, n := range after.Answers.Rescues {
		if more := n - before.Answers.Rescues[kind]; more > 0 {
			kinds[kind] = int(more)
		}
	}
	return kinds
}

// link does a command to the link of a node.
func (r *rehearsal) link(t *testing.T, node, command string) {
	t.Helper()
	if code, _, body := r.Post(context.Background(), "/v1/swarm/chaos/link", gateway.LinkOrder{Node: node, Command: command}); code != http.StatusOK {
		t.Fatalf("link %s: %s: %d %s", node, command, code, body)
	}
}

// slow makes the links to all nodes slow, so that what is done from outside
// meets an answer in its middle.
func (r *rehearsal) slow(t *testing.T, delay time.Duration) {
	t.Helper()
	for _, n := range r.Status().Nodes {
		r.link(t, n.ID, "delay "+delay.String())
	}
}

// wakeAll continues whoever was stopped, also when only the answer has noticed it
// yet, and waits until all is whole.
func (r *rehearsal) wakeAll(t *testing.T) {
	t.Helper()
	for _, n := range r.Status().Nodes {
		wake(t, r.Swarm, n.ID)
	}
	r.AwaitHealthy()
}
