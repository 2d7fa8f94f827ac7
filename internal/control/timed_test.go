package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/controltest"
	"hecate/swarm"
)

var someKey = strings.Repeat("ab", 32)

// rig is a swarm's control plane in memory and fake time.
type rig struct {
	t          *testing.T
	ctx        context.Context
	store      *controltest.Store
	bus        *controltest.Bus
	membership *control.Membership
	// obedient makes nodes hold what the newest plan wants of them, at each
	// report one layer range more or less.
	obedient bool
}

// inTime runs a test in a bubble of fake time, with a running membership.
func inTime(t *testing.T, test func(*testing.T, *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &rig{t: t, ctx: ctx, store: controltest.NewStore(), bus: controltest.NewBus()}
		r.membership = control.NewMembership(control.MembershipConfig{Store: r.store, Bus: r.bus})
		done := make(chan error, 1)
		go func() { done <- r.membership.Run(ctx) }()
		synctest.Wait()
		test(t, r)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (r *rig) enrol(id string, incarnation uint64) {
	r.t.Helper()
	r.record(id, func(n *control.NodeRecord) { n.Incarnation = incarnation })
}

// record writes a node's record, changed.
func (r *rig) record(id string, change func(*control.NodeRecord)) {
	r.t.Helper()
	rec := &control.NodeRecord{
		ID: id, Key: someKey, Desired: control.DesiredActive, Incarnation: 1,
		Profile: swarm.NodeProfile{ID: id, MemoryBytes: 1 << 30, Score: 1, Endpoints: []string{"127.0.0.1:7000"}},
	}
	e, err := r.store.Get(r.ctx, control.BucketNodes, id)
	if err == nil {
		if err := control.Decode(e.Value, rec); err != nil {
			r.t.Fatal(err)
		}
	}
	change(rec)
	data, err := control.Encode(rec)
	if err != nil {
		r.t.Fatal(err)
	}
	if e.Revision == 0 {
		_, err = r.store.Create(r.ctx, control.BucketNodes, id, data)
	} else {
		_, err = r.store.CompareAndSet(r.ctx, control.BucketNodes, id, data, e.Revision)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
}

// node starts a reporter; the returned function stops it, with a goodbye or
// like a process that was killed.
func (r *rig) node(id string, incarnation uint64) (rep *control.Reporter, stop func(goodbye bool) error) {
	rep = control.NewReporter(control.ReporterConfig{
		Node: id, Incarnation: incarnation, Instance: id, Fill: func(h *control.Health) {
			for _, f := range r.heldBy(id) {
				h.Held = append(h.Held, control.HeldFragment{Model: f.Model, Layers: f.Layers, State: control.HoldServing})
			}
		},
		Commands: map[string]control.CommandFunc{
			"echo": func(_ context.Context, args json.RawMessage) (any, error) { return args, nil },
			"fail": func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("no room") },
		},
	})
	ctx, cancel := context.WithCancel(r.ctx)
	done := make(chan struct{})
	var err error
	go func() { defer close(done); err = rep.Run(ctx, r.bus) }()
	synctest.Wait()
	return rep, func(goodbye bool) error {
		cancel()
		<-done
		if goodbye {
			rep.Goodbye(r.bus)
		}
		synctest.Wait()
		return err
	}
}

func (r *rig) heldBy(id string) []swarm.Fragment {
	if !r.obedient {
		return []swarm.Fragment{{Model: "m", Layers: swarm.LayerRange{First: 0, Last: 1}}}
	}
	e, err := r.store.Get(r.ctx, control.BucketPlan, control.PlanKey)
	if err != nil {
		return nil
	}
	d := new(control.PlanDocument)
	if err := control.Decode(e.Value, d); err != nil {
		r.t.Error(err)
		return nil
	}
	return d.Wanted(id)
}

func (r *rig) status(id string) string {
	synctest.Wait()
	time.Sleep(100 * time.Millisecond) // fake: telemetry is gathered before it is shown
	synctest.Wait()
	m := r.membership.View().Member(id)
	if m == nil {
		return "absent"
	}
	return m.Status.String()
}

func (r *rig) wantStatus(id, want string) {
	r.t.Helper()
	if got := r.status(id); got != want {
		r.t.Errorf("node %s is %s, want %s", id, got, want)
	}
}

func TestMembershipFollowsANodesLife(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		sub := r.membership.Subscribe()
		defer sub.Close()
		r.enrol("mini", 1)
		r.wantStatus("mini", "unheard")
		_, stop := r.node("mini", 1)
		r.wantStatus("mini", "alive")
		if v := r.membership.View(); v.Nodes["mini"].Dead || len(v.Member("mini").Health.Held) != 1 {
			t.Errorf("view: %+v", v.Nodes["mini"])
		}
		time.Sleep(30 * time.Second)
		r.wantStatus("mini", "alive")
		if err := stop(false); err != nil {
			t.Error(err)
		}
		killed := time.Now()
		for e := range sub.C {
			if d, ok := e.(control.Died); ok {
				if silent := time.Since(killed); silent > 2500*time.Millisecond {
					t.Errorf("noticed after %s", silent)
				}
				if d.Silence != 2400*time.Millisecond {
					t.Errorf("condemned after %s", d.Silence)
				}
				break
			}
		}
		if !r.membership.View().Nodes["mini"].Dead {
			t.Error("routing still thinks it lives")
		}
		r.enrol("mini", 2)
		_, stop = r.node("mini", 2)
		r.wantStatus("mini", "alive")
		if err := stop(true); err != nil {
			t.Error(err)
		}
		r.wantStatus("mini", "left")
	})
}

func TestAResetNodeThatLivesIsBackBeforeItsNextReport(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		r.enrol("mini", 1)
		_, stop := r.node("mini", 1)
		r.wantStatus("mini", "alive")
		sub := r.membership.Subscribe()
		defer sub.Close()
		r.membership.ReportReset("mini")
		first, second := <-sub.C, <-sub.C
		if _, ok := first.(control.Died); !ok {
			t.Errorf("first %s", first)
		}
		if back, ok := second.(control.Returned); !ok || back.After > 100*time.Millisecond {
			t.Errorf("then %s", second)
		}
		if err := stop(false); err != nil {
			t.Error(err)
		}
		r.membership.ReportReset("mini")
		if !r.membership.View().Nodes["mini"].Dead {
			t.Error("a killed node is not dead at once")
		}
		r.wantStatus("mini", "dead")
	})
}

// A node that cannot be dialled is asked for on the bus when its connections break.
func TestANodeThatConnectsToUsIsInquiredAfter(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		r.enrol("mini", 1)
		_, stop := r.node("mini", 1)
		r.wantStatus("mini", "alive")
		sub := r.membership.Subscribe()
		defer sub.Close()
		r.membership.Inquire("mini")
		time.Sleep(500 * time.Millisecond)
		r.wantStatus("mini", "alive")
		if n := len(sub.C); n != 0 {
			t.Errorf("%d events of a node that lives, the first %s", n, <-sub.C)
		}
		if err := stop(false); err != nil {
			t.Error(err)
		}
		began := time.Now()
		r.membership.Inquire("mini")
		if d, ok := (<-sub.C).(control.Died); !ok || d.Cause != control.CauseRefused || time.Since(began) > 10*time.Millisecond {
			t.Errorf("%v after %s", d, time.Since(began))
		}
	})
}

func TestWhoDoesNotHearHimselfCondemnsNobody(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		for _, id := range []string{"a", "b"} {
			r.enrol(id, 1)
			_, stop := r.node(id, 1)
			defer func() { _ = stop(false) }()
		}
		cut := func(silent bool) {
			for _, subject := range []string{control.EchoSubject("gateway"), control.HealthSubject("a"), control.HealthSubject("b")} {
				r.bus.Silence(subject, silent)
			}
		}
		r.wantStatus("a", "alive")
		cut(true)
		time.Sleep(time.Minute)
		r.wantStatus("a", "alive")
		r.membership.ReportReset("b") // seen on the data plane, so it counts
		if !r.membership.View().Nodes["b"].Dead {
			t.Error("a reset was not believed")
		}
		cut(false)
		time.Sleep(5 * time.Second)
		r.wantStatus("a", "alive")
		r.wantStatus("b", "alive")
		r.bus.Silence(control.HealthSubject("a"), true)
		time.Sleep(3 * time.Second)
		r.wantStatus("a", "dead")
	})
}

func TestAPausedNodeTakesNothingNew(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		r.enrol("mini", 1)
		_, stop := r.node("mini", 1)
		defer func() { _ = stop(false) }()
		r.wantStatus("mini", "alive")
		r.record("mini", func(n *control.NodeRecord) { n.Desired = control.DesiredPaused })
		r.wantStatus("mini", "alive")
		if m := r.membership.View().Member("mini"); m.Usable() || !r.membership.View().Nodes["mini"].Dead {
			t.Error("new work may go to a paused node")
		}
	})
}

func TestAnOldStartIsToldToGo(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		r.enrol("mini", 1)
		_, stopOld := r.node("mini", 1)
		r.wantStatus("mini", "alive")
		r.enrol("mini", 2)
		_, stopNew := r.node("mini", 2)
		defer func() { _ = stopNew(false) }()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if err := stopOld(false); !errors.Is(err, control.ErrSuperseded) {
			t.Errorf("the old one ended with %v", err)
		}
		r.wantStatus("mini", "alive")
	})
}

func TestForgedAndBrokenReportsAreCounted(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		r.enrol("mini", 1)
		for _, data := range []string{"", "{", `{"version":1}`} {
			if err := r.bus.Publish(control.HealthSubject("mini"), []byte(data)); err != nil {
				t.Fatal(err)
			}
		}
		forged, err := control.Encode(&control.Health{Node: "mini", Incarnation: 1, Sequence: 1, State: swarm.NodeState{ID: "mini"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.bus.Publish(control.HealthSubject("other"), forged); err != nil {
			t.Fatal(err)
		}
		r.wantStatus("mini", "unheard")
		if n := r.membership.BadReports(); n != 4 {
			t.Errorf("%d bad reports, want 4", n)
		}
	})
}

func TestReportsComeAtOnceOnChangeAndNotAsAStorm(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		var times []time.Time
		stopListening, err := r.bus.Subscribe(control.HealthSubject("mini"), func(control.Message) { times = append(times, time.Now()) })
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		rep, stop := r.node("mini", 1)
		time.Sleep(500 * time.Millisecond)
		for range 100 {
			rep.Changed()
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2400 * time.Millisecond)
		if err := stop(false); err != nil {
			t.Error(err)
		}
		stopListening()
		var after []time.Duration
		for _, at := range times {
			after = append(after, at.Sub(start))
		}
		// At 0, 500 ms, about five more while it changed, then 1, 2 and 3 s.
		if len(after) < 7 || len(after) > 12 || after[0] != 0 || after[1] != 500*time.Millisecond {
			t.Errorf("reports at %v", after)
		}
	})
}

func TestCommands(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		_, stop := r.node("mini", 4)
		who, err := control.AskWho(r.ctx, r.bus, "mini")
		if err != nil || who.Incarnation != 4 || who.Node != "mini" || who.PID == 0 {
			t.Errorf("who: %+v, %v", who, err)
		}
		var got string
		if err := control.Call(r.ctx, r.bus, "mini", "echo", "hello", &got); err != nil || got != "hello" {
			t.Errorf("echo: %q, %v", got, err)
		}
		if err := control.Call(r.ctx, r.bus, "mini", "fail", nil, nil); err == nil || !strings.Contains(err.Error(), "no room") {
			t.Errorf("fail: %v", err)
		}
		if err := control.Call(r.ctx, r.bus, "mini", "dance", nil, nil); err == nil || !strings.Contains(err.Error(), `"dance"`) {
			t.Errorf("unknown command: %v", err)
		}
		if err := stop(false); err != nil {
			t.Error(err)
		}
		if err := control.Call(r.ctx, r.bus, "mini", "echo", nil, nil); !errors.Is(err, control.ErrNoResponder) {
			t.Errorf("nobody there: %v", err)
		}
	})
}

func TestAFullSubscriptionLosesEventsAndCountsThem(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		sub := r.membership.Subscribe()
		r.enrol("mini", 1)
		_, stop := r.node("mini", 1)
		defer func() { _ = stop(false) }()
		for range 400 {
			r.membership.ReportReset("mini")
			time.Sleep(time.Millisecond)
		}
		if sub.Missed() == 0 {
			t.Error("nothing was missed")
		}
		sub.Close()
		sub.Close()
		n := 0
		for range sub.C {
			n++
		}
		if n != cap(sub.C) {
			t.Errorf("%d events waited, the queue holds %d", n, cap(sub.C))
		}
	})
}
