package bench

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hecate/internal/report"
)

func TestTrialsAreDrawn(t *testing.T) {
	draw := func(seed uint64) []trial {
		d := newDrawer(FailoverOptions{Seed: seed, Tokens: 64}, []string{"stop", "drop"}, 3)
		var out []trial
		for range 400 {
			out = append(out, d.next(4))
		}
		return out
	}
	all := draw(1)
	if !slices.Equal(all, draw(1)) {
		t.Error("the same seed draws other trials")
	}
	if slices.Equal(all, draw(2)) {
		t.Error("another seed draws the same trials")
	}
	seen := map[trial]bool{}
	tokens := map[int]bool{}
	for _, x := range all {
		if x.token < 1 || x.token > 62 || x.stage < 0 || x.stage > 2 || x.question < 0 || x.question > 3 {
			t.Fatalf("%+v is out of range", x)
		}
		tokens[x.token] = true
		x.token = 0
		seen[x] = true
	}
	if want := 2 * 3 * 4 * 2; len(seen) != want {
		t.Errorf("%d of %d combinations of action, stage, question and sampling", len(seen), want)
	}
	if len(tokens) < 55 {
		t.Errorf("only %d of 62 tokens", len(tokens))
	}
}

func TestTheShortestAnswerHasATrial(t *testing.T) {
	d := newDrawer(FailoverOptions{Tokens: 2}, []string{"kill"}, 1)
	if x := d.next(1); x.token != 1 || x.stage != 0 {
		t.Errorf("%+v", x)
	}
}

func TestTrialsAreCounted(t *testing.T) {
	sum := &tally{Outcome: Outcome{Rescues: map[string]int{}}}
	good := &reply{text: "same", at: line(0, 1, 2, 302, 304, 306).at, tokens: 6, rescues: 1, route: "mini[0-5],desk[6-11]"}
	kill := trial{action: "kill", stage: 1, token: 3}
	sum.take(kill, good, "same", map[string]int{"splice": 1})
	sum.take(kill, good, "other", map[string]int{"copy": 1})
	sum.take(kill, &reply{text: "same"}, "same", nil) // nothing befell it
	sum.take(kill, &reply{flaw: "the connection broke"}, "same", map[string]int{"copy": 1})
	want := Outcome{Answers: 3, Missed: 1, Lost: 1, Identical: 1}
	if sum.Answers != want.Answers || sum.Missed != want.Missed || sum.Lost != want.Lost || sum.Identical != want.Identical {
		t.Errorf("%+v, want %+v", sum.Outcome, want)
	}
	if k := sum.kinds(); k != "2 copy, 1 splice" {
		t.Errorf("rescues %s", k)
	}
	if len(sum.gaps) != 2 || sum.gaps[0] != 300*time.Millisecond || len(sum.before) != 2 || len(sum.after) != 2 {
		t.Errorf("gaps %v, before %v, after %v", sum.gaps, sum.before, sum.after)
	}
	if len(sum.Stories) != 2 || !strings.Contains(sum.Stories[0], `"same" instead of "other"`) || !strings.Contains(sum.Stories[1], "the connection broke") {
		t.Errorf("stories %q", sum.Stories)
	}
	for range 2 * maxStories {
		sum.take(kill, &reply{flaw: "x"}, "same", nil)
	}
	if len(sum.Stories) != maxStories {
		t.Errorf("%d stories", len(sum.Stories))
	}
}

func TestNodesOfARoute(t *testing.T) {
	const route = "mini[0-5],laptop[6-8],mini[9-11]"
	for stage, want := range []string{"mini", "laptop", "mini", ""} {
		if got := nodeOf(route, stage); got != want {
			t.Errorf("stage %d: %q, want %q", stage, got, want)
		}
	}
	if got := nodeOf("", 0); got != "" {
		t.Errorf("no route: %q", got)
	}
}

func TestRescuesBetweenTwoLooks(t *testing.T) {
	then := report.Status{Answers: report.Answers{Rescues: map[string]int64{"splice": 3, "copy": 1}}}
	now := report.Status{Answers: report.Answers{Rescues: map[string]int64{"splice": 4, "copy": 1, "reconnect": 2}}}
	got := rescued(then, now)
	if len(got) != 2 || got["splice"] != 1 || got["reconnect"] != 2 {
		t.Errorf("%v", got)
	}
}
