package sim

import (
	"testing"
	"time"

	"hecate/swarm"
)

// A load is heard of one delay after it was true, and not before.
func TestReportsAreLate(t *testing.T) {
	const every, delay = 100 * time.Millisecond, 2 * time.Second
	s := Scenario{Plan: whole(10, 2), Hardware: exact(), Telemetry: Telemetry{Every: every, Delay: delay}}
	// One node is busy from 0 to 5 s. Small requests to the other look at what
	// is known of the first.
	s.Arrivals = append(s.Arrivals, at(0, 1, 500))
	for ms := 10; ms < 9000; ms += 10 {
		s.Arrivals = append(s.Arrivals, at(ms, 1, 1))
	}
	var up, down time.Duration
	asked := 0
	s.Rules.Route = func(r *swarm.Router, model string, _ swarm.Request, _ *swarm.Weights) (swarm.Route, error) {
		v, _ := r.Fleet().Node("n0")
		busy := v.State.Load.Value > 0
		switch {
		case busy && up == 0:
			up = v.SeenAt.Sub(epoch)
		case !busy && up > 0 && down == 0:
			down = v.SeenAt.Sub(epoch)
		}
		p := r.Plan().Pipelines[min(asked, 1)]
		asked++
		return swarm.Route{Model: model, PipelineID: p.ID, Stages: p.Stages}, nil
	}
	run(t, s, "classic")
	if up < delay || up > delay+every {
		t.Errorf("the load is heard of after %v, want %v to %v", up, delay, delay+every)
	}
	if end := 5 * time.Second; down < end+delay-20*time.Millisecond || down > end+delay+every {
		t.Errorf("the end of the load is heard of after %v, want %v to %v", down, end+delay, end+delay+every)
	}
}

// Each node reports once per interval, the dead do not.
func TestReportsComeOncePerInterval(t *testing.T) {
	s := Scenario{Plan: whole(4, 5), Hardware: exact(), Telemetry: Telemetry{Every: 500 * time.Millisecond},
		Arrivals: []Arrival{at(0, 1, 1), at(10_000, 1, 1)},
		Outages:  []Outage{{Node: "n3", At: 2 * time.Second, For: 4 * time.Second}}}
	w := newWorldOf(t, s, "round-robin")
	seen := map[int32]int{}
	for w.arrived < 2 {
		if r := &w.reports; r.due() <= w.reports.next() && r.head < len(r.way) {
			seen[r.way[r.head].node]++
		}
		w.step()
	}
	for n := range int32(5) {
		want := 20
		if n == 3 {
			want = 12
		}
		if got := seen[n]; got < want-1 || got > want+1 {
			t.Errorf("node %d reported %d times in 10 s, want about %d", n, got, want)
		}
	}
}

// Two gateways hear the same reports but do not see each other's reservations.
func TestGatewaysDoNotSeeEachOther(t *testing.T) {
	s := Scenario{Plan: whole(40, 4), Hardware: exact(), Telemetry: Telemetry{Delay: time.Hour}}
	s.Hardware.Slots = 8
	for range 32 {
		s.Arrivals = append(s.Arrivals, at(0, 16, 64))
	}
	alone := run(t, s, "adaptive")
	s.Gateways = 32
	apart := run(t, s, "adaptive")
	if alone.PeakSessions != 8 {
		t.Errorf("one gateway puts %d of 32 requests on one of four nodes, want 8", alone.PeakSessions)
	}
	if apart.PeakSessions != 32 {
		t.Errorf("32 gateways that know nothing put %d on one node, want all", apart.PeakSessions)
	}
	if lot := run(t, s, "two-choice"); lot.PeakSessions >= 24 {
		t.Errorf("drawing lots leaves %d on one node", lot.PeakSessions)
	}
}
