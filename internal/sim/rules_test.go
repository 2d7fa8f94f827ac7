package sim

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"hecate/swarm"
)

// Every decision is package swarm's: another rule in its place is asked as
// often as there is something to decide, and the simulation comes out
// differently.
func TestEveryDecisionIsSwarms(t *testing.T) {
	plan := generated(t, Size{Nodes: 12, Copies: 4})
	s := Scenario{Plan: plan, Seed: 1, Outages: []Outage{{Node: plan.Pipelines[0].Stages[0].Node, At: 3 * time.Second, For: 4 * time.Second}}}
	s.Arrivals = Poisson(400, 0.6*Capacity(plan, s.Hardware, Lengths{}), Lengths{}, Traffic(plan), 1)
	calls := 0
	refuse := errors.New("no")
	replaced := []struct {
		policy  string
		what    string
		rules   Rules
		perhaps func(Result) int // how often the rule is asked
	}{
		{"adaptive", "Choose", Rules{Choose: func(r *swarm.Router, model string, req swarm.AdaptiveRequest, p swarm.Policy) (swarm.Route, error) {
			calls++
			return dearest(r, model)
		}}, func(r Result) int { return r.Requests }},
		{"two-choice", "Choose", Rules{Choose: func(r *swarm.Router, model string, req swarm.AdaptiveRequest, p swarm.Policy) (swarm.Route, error) {
			calls++
			if p.Choice != swarm.TwoChoices {
				t.Error("two-choice asks for another mode")
			}
			return dearest(r, model)
		}}, func(r Result) int { return r.Requests }},
		{"classic", "Route", Rules{Route: func(r *swarm.Router, model string, _ swarm.Request, _ *swarm.Weights) (swarm.Route, error) {
			calls++
			return dearest(r, model)
		}}, func(r Result) int { return r.Requests }},
		{"adaptive", "Rescue", Rules{Rescue: func(*swarm.Router, swarm.Route, string, swarm.RescueRequest, swarm.Policy) (swarm.Rescue, error) {
			calls++
			return swarm.Rescue{}, refuse
		}}, func(r Result) int { return r.Lost }},
		{"classic", "Failover", Rules{Failover: func(swarm.Route, string, swarm.State, swarm.FailoverOptions) (swarm.Route, error) {
			calls++
			return swarm.Route{}, refuse
		}}, func(r Result) int { return r.Lost }},
	}
	for _, c := range replaced {
		t.Run(c.policy+"/"+c.what, func(t *testing.T) {
			before := run(t, s, c.policy)
			with := s
			with.Rules = c.rules
			calls = 0
			after := run(t, with, c.policy)
			if want := c.perhaps(after); calls != want || calls == 0 {
				t.Errorf("%s was asked %d times, want %d", c.what, calls, want)
			}
			if before == after {
				t.Errorf("another %s changes nothing", c.what)
			}
		})
	}
}

// dearest is a bad rule: the last copy, dead or alive.
func dearest(r *swarm.Router, model string) (swarm.Route, error) {
	pipes := r.Plan().PipelinesOf(model)
	last := pipes[len(pipes)-1]
	return swarm.Route{Model: model, PipelineID: last.ID, Stages: last.Stages}, nil
}

// The rules that run unless told otherwise are swarm's own: the simulator's
// choices can be had from package swarm directly.
func TestClassicIsRouteRequest(t *testing.T) {
	plan := generated(t, Size{Nodes: 12, Copies: 4})
	s := Scenario{Plan: plan, Seed: 1, Arrivals: Poisson(200, 20, Lengths{}, Traffic(plan), 1)}
	asked := 0
	s.Rules.Route = func(r *swarm.Router, model string, req swarm.Request, w *swarm.Weights) (swarm.Route, error) {
		asked++
		got, gotErr := r.RouteRequest(model, req, w)
		want, wantErr := swarm.RouteRequest(model, req, r.Fleet().State(r.Plan()))
		if got.String() != want.String() || (gotErr == nil) != (wantErr == nil) {
			t.Errorf("compiled %v (%v), plain %v (%v)", got, gotErr, want, wantErr)
		}
		return got, gotErr
	}
	with := run(t, s, "classic")
	s.Rules = Rules{}
	if without := run(t, s, "classic"); with != without || asked != 200 {
		t.Errorf("asked %d times; with the rule spelled out %+v, without %+v", asked, with, without)
	}
}

// A policy from outside takes part like the built-in ones.
func TestAForeignPolicy(t *testing.T) {
	plan := whole(4, 3)
	s := Scenario{Plan: plan, Hardware: exact(), Arrivals: []Arrival{at(0, 1, 5), at(1, 1, 5), at(2, 1, 5)}}
	last := Policy{Name: "last", Make: func(g *Gateway) Decider { return lastCopy{g} }}
	results, err := Compare(context.Background(), s, []Policy{last, policy(t, "round-robin")})
	if err != nil {
		t.Fatal(err)
	}
	if got := []string{results[0].Policy, results[1].Policy}; !slices.Equal(got, []string{"last", "round-robin"}) {
		t.Errorf("results of %v", got)
	}
	if results[0].PeakSessions != 3 || results[1].PeakSessions != 1 {
		t.Errorf("peaks %d and %d, want 3 on one node and 1 on each", results[0].PeakSessions, results[1].PeakSessions)
	}
}

type lastCopy struct{ gateway *Gateway }

func (l lastCopy) Route(j *Job) (swarm.Route, error) { return dearest(l.gateway.Router(), j.Model) }
func (l lastCopy) Rescue(*Job, swarm.Route, string) (swarm.Route, error) {
	return swarm.Route{}, swarm.ErrUnrecoverable
}
