package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/controltest"
	"hecate/internal/gateway/admission"
	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/dispatch"
	"hecate/swarm"
)

// sharing is the admission of one gateway, in front of a node of 1,000 cells of
// which 875 are for sale, and its claims.
func sharing(t *testing.T, ctx context.Context, bus control.Bus, name string) *admission.Admission {
	t.Helper()
	d := dispatch.New(dispatch.Config{})
	d.SetPlan(&swarm.Plan{
		Models:    []swarm.ModelSpec{{ID: "m", Layers: 1}},
		Pipelines: []swarm.Pipeline{{Model: "m", Stages: []swarm.Stage{{Node: "n", Layers: swarm.Layers(0, 0)}}}},
	})
	state := swarm.NodeState{ID: "n", LatencyMS: swarm.Measured(5), Load: swarm.Measured(0), Score: swarm.Measured(10), Fragments: []swarm.Fragment{{Model: "m", Layers: swarm.Layers(0, 0)}}}
	health := &control.Health{Node: "n", Incarnation: 1, Sequence: 1, State: state, Cells: 1000, FreeCells: 1000}
	d.SetView(&control.View{Nodes: map[string]swarm.NodeState{"n": state}, Members: []control.Member{{ID: "n", Status: control.StatusAlive, Heard: time.Now(), Health: health}}})
	a := admission.New(d, admission.Limits{Gateway: name})
	go func() {
		if err := (&claims{bus: bus, admission: a, name: name}).run(ctx); err != nil {
			t.Error(err)
		}
	}()
	synctest.Wait()
	return a
}

// What an answer of one gateway waits for, the other one's newcomers leave to it;
// when its gateway falls silent they go on after a node's silence.
func TestGatewaysHeedEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := controltest.NewBus()
		first, die := context.WithCancel(t.Context())
		one, two := sharing(t, first, bus, "one"), sharing(t, t.Context(), bus, "two")
		need := answer.Need{Model: "m", Layers: 1, PromptTokens: 10, OutputTokens: 1000, Cells: 400, Next: 100}
		g, err := one.Choose(t.Context(), need)
		if err != nil {
			t.Fatal(err)
		}
		beside, err := one.Choose(t.Context(), answer.Need{Model: "m", Layers: 1, PromptTokens: 10, OutputTokens: 190})
		if err != nil {
			t.Fatal(err)
		}
		need.Begun, need.Cells = true, 800
		waiting, leave := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() {
			_, err := one.GiveWay(waiting, need, g, nil)
			over <- err
		}()
		synctest.Wait()
		began := time.Now()
		time.AfterFunc(5*time.Second, die) // until then it is said again and again
		small := answer.Need{Model: "m", Layers: 1, PromptTokens: 10, OutputTokens: 10}
		next, err := two.Choose(t.Context(), small)
		if took := time.Since(began); err != nil || took < 5*time.Second+claimsLife-claimsRenew || took > 5*time.Second+claimsLife+claimsEvery {
			t.Errorf("admitted after %s: %v", took, err)
		}
		two.Release(next)
		leave()
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Errorf("the wait ended with %v", err)
		}
		one.Release(g)
		one.Release(beside)
	})
}

// Claims survive the way over the bus.
func TestClaimsAreSaid(t *testing.T) {
	w := admission.Claim{
		Oldest: time.Unix(1, 5).UTC(), Holds: true, Missing: map[string]int{"n": 3}, Youngest: time.Unix(2, 7).UTC(),
		Growth: map[string]dispatch.Growth{"n": {Most: 2, All: 5}},
	}
	data, err := control.Encode(&control.RoomClaims{Gateway: "one", Claims: []control.RoomClaim{claimOf("m", w)}})
	if err != nil {
		t.Fatal(err)
	}
	said := &control.RoomClaims{}
	if err := control.Decode(data, said); err != nil {
		t.Fatal(err)
	}
	if got := wantOf(said.Claims[0]); !got.Equal(w) {
		t.Errorf("%+v came as %+v", w, got)
	}
	if data, err = json.Marshal(claimOf("m", admission.Claim{})); err != nil || string(data) != `{"model":"m"}` {
		t.Errorf("nothing is said as %s, %v", data, err)
	}
	for _, bad := range []control.RoomClaim{
		{Model: "m", Missing: map[string]int{"n": 0}},
		{Model: "m", Growth: map[string]control.RoomGrowth{"n": {Most: 3, All: 2}}},
		{Model: "a/../b"},
	} {
		if _, err := control.Encode(&control.RoomClaims{Gateway: "one", Claims: []control.RoomClaim{bad}}); err == nil {
			t.Errorf("%+v was not refused", bad)
		}
	}
}
