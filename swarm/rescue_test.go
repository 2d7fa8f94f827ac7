package swarm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// rescueFleet is two copies of two stages, and a spare that holds the middle.
func rescueFleet(t *testing.T) (*Fleet, *Router, Route) {
	t.Helper()
	plan := &Plan{Models: []ModelSpec{{ID: "m", Layers: 10}, {ID: "small", Layers: 4}}, Pipelines: []Pipeline{
		{ID: 0, Model: "m", Stages: []Stage{{"a", Layers(0, 4)}, {"b", Layers(5, 9)}}},
		{ID: 1, Model: "m", Stages: []Stage{{"c", Layers(0, 4)}, {"d", Layers(5, 9)}}},
		{ID: 2, Model: "small", Stages: []Stage{{"e", Layers(0, 3)}}},
	}}
	st := StateFromPlan(plan)
	spare := st.Nodes["e"]
	spare.Fragments = append(spare.Fragments, Fragment{"m", Layers(3, 9)})
	st.Nodes["e"] = spare
	f := fleetOf(t, st, time.Time{})
	for id := range st.Nodes {
		signal(t, f, id, Signals{LayerMS: Measured(1), RoundTripMS: Measured(0)})
	}
	return f, NewRouter(plan, f), Route{Model: "m", PipelineID: 0, Stages: plan.Pipelines[0].Stages}
}

func TestRescue(t *testing.T) {
	kill := func(ids ...string) func(*testing.T, *Fleet) {
		return func(_ *testing.T, f *Fleet) {
			for _, id := range ids {
				f.MarkDead(id)
			}
		}
	}
	open := func(ids ...string) func(*testing.T, *Fleet) {
		return func(t *testing.T, f *Fleet) {
			for _, id := range ids {
				signal(t, f, id, Signals{LayerMS: Measured(1), RoundTripMS: Measured(0), Circuit: CircuitOpen})
			}
		}
	}
	long := AdaptiveRequest{PromptTokens: 800, OutputTokens: 100}
	for _, c := range []struct {
		name   string
		set    func(*testing.T, *Fleet)
		failed string
		req    RescueRequest
		want   string // or what the error says
	}{
		{"not on the route", kill(), "c", RescueRequest{}, "0 a[0-4] b[5-9] not on the route"},
		{"a whole copy first", kill(), "b", RescueRequest{}, "1 c[0-4] d[5-9] pipeline 1 stands in"},
		{"then a splice", kill("d"), "b", RescueRequest{}, "-1 a[0-4] e[5-9] e:5-9"},
		{"soonest: a splice replays one range", kill(), "b", RescueRequest{Adaptive: long, Prefer: PreferSoonest, StatesHeld: true}, "-1 a[0-4] d[5-9] d:5-9"},
		{"soonest: without the states it is no better", kill(), "b", RescueRequest{Adaptive: long, Prefer: PreferSoonest}, "1 c[0-4] d[5-9]"},
		{"a copy on probation is used when nothing else is", open("d", "e"), "b", RescueRequest{}, "1 c[0-4] d[5-9]"},
		{"a good splice beats a doubtful copy", open("d"), "b", RescueRequest{}, "-1 a[0-4] e[5-9] e:5-9"},
		{"the other dead one counts too", kill("a", "d"), "b", RescueRequest{}, "-1 c[0-4] e[5-9] c:0-4 e:5-9 spliced around [a b]"},
		{"both dead and one without a holder", kill("a", "c", "d"), "b", RescueRequest{}, "lost a, b: no other living holder of layers 0-2"},
		{"lost layers may be split", func(t *testing.T, f *Fleet) {
			f.MarkDead("c")
			for id, held := range map[string]LayerRange{"a": Layers(0, 4), "d": Layers(5, 7)} {
				if err := f.Observe(NodeState{ID: id, Fragments: []Fragment{{"m", held}}}, time.Time{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Observe(NodeState{ID: "e", Fragments: []Fragment{{"m", Layers(7, 9)}}}, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}, "b", RescueRequest{}, "-1 a[0-4] d[5-7] e[8-9] d:5-7 e:8-9"},
		{"a survivor may take over", func(t *testing.T, f *Fleet) {
			kill("c", "e", "d")(t, f)
			if err := f.Observe(NodeState{ID: "a", Fragments: []Fragment{{"m", Layers(0, 9)}}}, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}, "b", RescueRequest{}, "-1 a[0-9] a:5-9"},
		{"no room in the KV cache", func(t *testing.T, f *Fleet) {
			kill("c")(t, f)
			for _, id := range []string{"d", "e"} {
				signal(t, f, id, Signals{LayerMS: Measured(1), RoundTripMS: Measured(0), KVFree: Measured(899)})
			}
		}, "b", RescueRequest{Adaptive: long}, "no other living holder of layers 5-9"},
		{"the declared fallback", kill("c"), "a", RescueRequest{FallbackModel: "small"}, "2 e[0-3] small degraded"},
		{"the survivors", kill("c", "e"), "a", RescueRequest{FallbackModel: "small"}, "-1 b[-] small degraded"},
		{"nothing declared", kill("c"), "a", RescueRequest{}, "no other living holder of layers 0-2"},
		{"bad request", kill(), "b", RescueRequest{Adaptive: AdaptiveRequest{PromptTokens: -1}}, "below zero"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, router, route := rescueFleet(t)
			c.set(t, f)
			got, err := router.Rescue(route, c.failed, c.req, Policy{})
			if text := rescueText(got.Route, err); !strings.Contains(text, c.want) {
				t.Errorf("got %q, want %q", text, c.want)
			}
			if err != nil && !errors.Is(err, ErrUnrecoverable) && c.name != "bad request" {
				t.Errorf("%v is not ErrUnrecoverable", err)
			}
		})
	}
}

func rescueText(r Route, err error) string {
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("%d %s", r.PipelineID, stagesText(r.Stages))
	for _, rep := range r.Replaced {
		text += fmt.Sprintf(" %s:%s", rep.By, rep.Layers)
	}
	if r.Degraded {
		text += " " + r.Model + " degraded"
	}
	return text + " " + r.Reason
}

// The time to resume is what each way has to read again.
func TestResumeEstimates(t *testing.T) {
	f, router, route := rescueFleet(t)
	resume := func(req RescueRequest) string {
		req.Adaptive.PromptTokens = 800
		got, err := router.Rescue(route, "b", req, Policy{})
		if err != nil {
			t.Fatal(err)
		}
		return got.Resume.String()
	}
	// 800 tokens through a layer of 1 ms, read eight times faster, are 100 ms;
	// the awaited token is 1 ms more.
	if got := resume(RescueRequest{}); got != "1010ms" {
		t.Errorf("a copy resumes in %s, want 1010ms", got)
	}
	if got := resume(RescueRequest{Prefer: PreferSoonest, StatesHeld: true}); got != "505ms" {
		t.Errorf("a splice resumes in %s, want 505ms", got)
	}
	if got := resume(RescueRequest{Prefer: PreferSoonest, StatesHeld: true, Warm: map[string]int{"e": 736}}); got != "45ms" {
		t.Errorf("a splice into a shadow resumes in %s, want 45ms", got)
	}
	f.MarkDead("c")
	if got := resume(RescueRequest{}); got != "1010ms" {
		t.Errorf("a splice without states resumes in %s, want 1010ms", got)
	}
}

// Whether there is a rescue does not depend on which of the two finds it, and
// neither ever runs on the dead.
func TestRescueAgreesWithFailoverInSwarm(t *testing.T) {
	r := rand.New(rand.NewPCG(91, 92))
	kinds := map[string]int{}
	for i := range 4000 {
		st := randomPlanned(r)
		f := fleetOf(t, st, time.Time{})
		router := NewRouter(st.Plan, f)
		p := st.Plan.Pipelines[r.IntN(len(st.Plan.Pipelines))]
		route := Route{Model: p.Model, PipelineID: p.ID, Stages: p.Stages}
		failed := p.Stages[r.IntN(len(p.Stages))].Node
		fallback := []string{"", "m", "other"}[r.IntN(3)]
		got, err := router.Rescue(route, failed, RescueRequest{FallbackModel: fallback, Prefer: RescuePreference(r.IntN(2))}, Policy{})
		want, wantErr := FailoverInSwarm(route, failed, st, FailoverOptions{FallbackModel: fallback, ConfirmedOnly: true})
		kind := checkRescue(t, i, route, got.Route, err, failed, st, FailoverOptions{FallbackModel: fallback})
		kinds[kind]++
		if (err == nil) != (wantErr == nil) || got.Route.Degraded != want.Degraded || got.Route.Model != want.Model {
			t.Fatalf("swarm %d: %v, %v by measured time, %v, %v by the rules", i, got.Route, err, want, wantErr)
		}
	}
	for _, k := range []string{"full", "degraded", "error"} {
		if kinds[k] < 100 {
			t.Errorf("%d of %q: the swarms are too much alike", kinds[k], k)
		}
	}
}
