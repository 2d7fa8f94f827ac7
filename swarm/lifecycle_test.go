package swarm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func threeNodes() []NodeProfile {
	return []NodeProfile{
		{ID: "a", MemoryBytes: 9, Score: 4, LatencyMS: 1},
		{ID: "b", MemoryBytes: 9, Score: 4, LatencyMS: 2},
		{ID: "c", MemoryBytes: 9, Score: 4, LatencyMS: 3},
	}
}

func newSwarm(t *testing.T, nodes []NodeProfile, c Config) *Swarm {
	t.Helper()
	if c.Pipelines == 0 {
		c.Pipelines = 2
	}
	if c.Layers == 0 {
		c.Layers, c.LayerBytes = 12, 1
	}
	if c.Planner == (Planner{}) {
		c.Planner = bare
	}
	s, err := New(nodes, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantState(t *testing.T, s *Swarm, want Health) {
	t.Helper()
	if got := s.Status().State; got != want {
		t.Fatalf("state %s, want %s: %+v", got, want, s.Status())
	}
}

func TestLifeCycle(t *testing.T) {
	s := newSwarm(t, threeNodes(), Config{})
	wantState(t, s, Healthy)
	shared := s.Plan().SharedNodes[0].Node

	// The shared node breaks both copies; a splice serves.
	rescue, err := s.MarkDown(shared)
	if err != nil || len(rescue.Replaced) == 0 || rescue.Uses(shared) {
		t.Fatalf("rescue %v, %v", rescue, err)
	}
	wantState(t, s, Degraded)
	route, err := s.Route(Request{})
	if err != nil || route.Uses(shared) || route.Degraded {
		t.Fatalf("route %v, %v", route, err)
	}
	if err := ValidateRoute(route, s.State(), RouteCheck{Window: &LayerRange{0, 11}}); err != nil {
		t.Error(err)
	}

	// Everything dies: failed, and still alive enough to come back.
	for _, id := range []string{"a", "b", "c"} {
		if _, err := s.MarkDown(id); err != nil && !errors.Is(err, ErrUnrecoverable) && !errors.Is(err, ErrNoRoute) {
			t.Fatal(err)
		}
	}
	wantState(t, s, Failed)
	if _, err := s.Route(Request{}); !errors.Is(err, ErrNoRoute) {
		t.Errorf("route in a failed swarm: %v", err)
	}
	for _, id := range []string{"a", "b", "c"} {
		if err := s.MarkAlive(id); err != nil {
			t.Fatal(err)
		}
		if n := s.State().Nodes[id]; n.Dead || n.IsMeasured() {
			t.Errorf("%s is %+v after it came back", id, n)
		}
	}
	wantState(t, s, Healthy)

	// Growth and shrinking plan anew.
	if err := s.AddNode(NodeProfile{ID: "d", MemoryBytes: 9, Score: 4}); err != nil {
		t.Fatal(err)
	}
	if g := s.Plan().Generation; g != 2 {
		t.Errorf("generation %d after a join", g)
	}
	wantState(t, s, Healthy)
	if err := s.RemoveNode("a"); err != nil {
		t.Fatal(err)
	}
	if g := s.Plan().Generation; g != 3 {
		t.Errorf("generation %d after a leave", g)
	}
	wantState(t, s, Healthy)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	wantState(t, s, Stopped)
}

func TestDeathThenReplan(t *testing.T) {
	nodes := append(threeNodes(), NodeProfile{ID: "d", MemoryBytes: 9, Score: 4})
	s := newSwarm(t, nodes, Config{})
	if _, err := s.MarkDown("a"); err != nil {
		t.Fatal(err)
	}
	wantState(t, s, Degraded)
	if err := s.Replan(); err != nil {
		t.Fatal(err)
	}
	wantState(t, s, Healthy)
	if _, ok := s.Plan().Node("a"); ok {
		t.Error("the plan counts on a dead node")
	}
	// The dead node is still a member: it may come back, or be removed.
	if err := s.MarkAlive("a"); err != nil {
		t.Error(err)
	}
	if err := s.Replan(); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Plan().Node("a"); !ok {
		t.Error("the plan leaves out a living member")
	}
}

// A rescue is computed while the node still lives in the books.
func TestMarkDownRescuesBeforeItMarks(t *testing.T) {
	nodes := []NodeProfile{{ID: "a", MemoryBytes: 12, Score: 9}, {ID: "b", MemoryBytes: 12, Score: 3}}
	s := newSwarm(t, nodes, Config{})
	before, err := s.Route(Request{})
	if err != nil || !slices.Equal(before.Nodes(), []string{"a"}) {
		t.Fatalf("%v, %v", before, err)
	}
	rescue, err := s.MarkDown("a")
	if err != nil || !slices.Equal(rescue.Nodes(), []string{"b"}) || rescue.Degraded {
		t.Fatalf("rescue %v, %v", rescue, err)
	}
	again, err := s.MarkDown("a")
	if err != nil || again.Reason != ReasonAlreadyDown {
		t.Errorf("again: %v, %v", again, err)
	}
	if _, err := s.MarkDown("b"); !errors.Is(err, ErrUnrecoverable) {
		t.Errorf("the last node: %v", err)
	}
	wantState(t, s, Failed)
}

func TestMarkDownOffTheRoute(t *testing.T) {
	nodes := []NodeProfile{{ID: "a", MemoryBytes: 12, Score: 9}, {ID: "b", MemoryBytes: 12, Score: 3}}
	s := newSwarm(t, nodes, Config{})
	rescue, err := s.MarkDown("b")
	if err != nil || rescue.Reason != ReasonNotOnRoute || !slices.Equal(rescue.Nodes(), []string{"a"}) {
		t.Errorf("%v, %v", rescue, err)
	}
	wantState(t, s, Degraded)
}

// snapshot is all that a refused call must not change.
func snapshot(s *Swarm) string {
	return fmt.Sprintf("%v %s %+v %+v", s.health, dump(s.state.Plan), s.state.Nodes, s.members)
}

func TestRefusedCallsChangeNothing(t *testing.T) {
	refusing := growthFunc(func(*Room) []string { return []string{"nobody"} })
	for _, c := range []struct {
		name string
		call func(*Swarm) error
		want error
	}{
		{"mark an unknown node down", func(s *Swarm) error { _, err := s.MarkDown("x"); return err }, ErrInvalid},
		{"mark an unknown node alive", func(s *Swarm) error { return s.MarkAlive("x") }, ErrInvalid},
		{"add a member again", func(s *Swarm) error { return s.AddNode(NodeProfile{ID: "a", MemoryBytes: 1}) }, ErrInvalid},
		{"add a dead member again", func(s *Swarm) error { return s.AddNode(NodeProfile{ID: "b", MemoryBytes: 1}) }, ErrInvalid},
		{"add a node with negative memory", func(s *Swarm) error { return s.AddNode(NodeProfile{ID: "x", MemoryBytes: -1}) }, ErrInvalid},
		{"add a node without an id", func(s *Swarm) error { return s.AddNode(NodeProfile{}) }, ErrInvalid},
		{"remove an unknown node", func(s *Swarm) error { return s.RemoveNode("x") }, ErrInvalid},
		{"report an unknown node", func(s *Swarm) error { return s.Report(NodeState{ID: "x"}) }, ErrInvalid},
		{"report nonsense", func(s *Swarm) error { return s.Report(NodeState{ID: "a", Load: Measured(-1)}) }, ErrInvalid},
		{"an inverted window", func(s *Swarm) error { _, err := s.Route(Request{Window: &LayerRange{3, 1}}); return err }, ErrInvalid},
		{"an unknown model", func(s *Swarm) error { _, err := s.RouteModel("x", Request{}); return err }, ErrNoRoute},
		{"a growth policy that invents experts", func(s *Swarm) error {
			s.config.Growth, s.config.Catalogue = refusing, []ModelSpec{{ID: "e", Layers: 1, LayerBytes: []int64{1}, Expert: true}}
			defer func() { s.config.Growth, s.config.Catalogue = PriorityGrowth{}, nil }()
			return s.AddNode(NodeProfile{ID: "x", MemoryBytes: 1})
		}, ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSwarm(t, threeNodes(), Config{})
			if _, err := s.MarkDown("b"); err != nil {
				t.Fatal(err)
			}
			before := snapshot(s)
			if err := c.call(s); !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
			if after := snapshot(s); after != before {
				t.Errorf("changed:\n%s\n%s", before, after)
			}
		})
	}
}

type growthFunc func(*Room) []string

func (f growthFunc) Choose(r *Room) []string { return f(r) }

func TestTheLastLivingNodeStays(t *testing.T) {
	s := newSwarm(t, threeNodes(), Config{})
	for _, id := range []string{"a", "b"} {
		_, _ = s.MarkDown(id)
	}
	before := snapshot(s)
	if err := s.RemoveNode("c"); !errors.Is(err, ErrInvalid) || before != snapshot(s) {
		t.Errorf("%v", err)
	}
	if err := s.RemoveNode("a"); err != nil {
		t.Errorf("a dead member may go: %v", err)
	}
}

func TestStoppedRefusesEverythingButStatus(t *testing.T) {
	s := newSwarm(t, threeNodes(), Config{})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	before := snapshot(s)
	calls := map[string]func() error{
		"Route":      func() error { _, err := s.Route(Request{}); return err },
		"RouteModel": func() error { _, err := s.RouteModel("base", Request{}); return err },
		"MarkDown":   func() error { _, err := s.MarkDown("a"); return err },
		"MarkAlive":  func() error { return s.MarkAlive("a") },
		"AddNode":    func() error { return s.AddNode(NodeProfile{ID: "x", MemoryBytes: 1}) },
		"RemoveNode": func() error { return s.RemoveNode("a") },
		"Replan":     s.Replan,
		"Report":     func() error { return s.Report(NodeState{ID: "a"}) },
		"Stop":       s.Stop,
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, ErrStopped) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s.Status().State != Stopped || snapshot(s) != before {
		t.Error("a stopped swarm changed")
	}
	// Every method that may act is in the list above.
	read := []string{"Status", "Plan", "State", "Base"}
	for i := range reflect.TypeOf(s).NumMethod() {
		name := reflect.TypeOf(s).Method(i).Name
		if _, ok := calls[name]; !ok && !slices.Contains(read, name) {
			t.Errorf("method %s is not tried on a stopped swarm", name)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	ok := threeNodes()
	expert := ModelSpec{ID: "e", Layers: 1, LayerBytes: []int64{1}}
	for _, c := range []struct {
		name  string
		nodes []NodeProfile
		c     Config
		want  string
	}{
		{"no nodes", nil, Config{Layers: 4, Pipelines: 1}, "no node profiles"},
		{"zero layers", ok, Config{Pipelines: 1}, "0 layers"},
		{"zero pipelines", ok, Config{Layers: 4}, "0 pipelines"},
		{"duplicate node", append(ok, ok[0]), Config{Layers: 4, Pipelines: 1}, `"a" is given twice`},
		{"a base model that is an expert", ok, Config{Pipelines: 1, Models: []ModelSpec{{ID: "m", Layers: 1, LayerBytes: []int64{1}, Expert: true}}}, "belongs into the catalogue"},
		{"expert with the base's id", ok, Config{Layers: 4, Pipelines: 1, Model: "e", Catalogue: []ModelSpec{expert}}, `"e" is given twice`},
		{"unknown fallback", ok, Config{Layers: 4, Pipelines: 1, Fallback: "x"}, `fallback "x"`},
		{"base not there", ok, Config{Pipelines: 1, Model: "x", Models: []ModelSpec{flat("m", 1, 1)}}, `base model "x"`},
		{"bad weights", ok, Config{Layers: 4, Pipelines: 1, Weights: &Weights{Latency: -1}}, "latency"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := New(c.nodes, c.c)
			if s != nil || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestGrowthNeverTouchesTheBase(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for i := range 200 {
		base := randomModel(rng, "base")
		var catalogue []ModelSpec
		for k := range 1 + rng.IntN(3) {
			e := randomModel(rng, fmt.Sprintf("expert-%d", k))
			e.Priority = rng.IntN(5)
			catalogue = append(catalogue, e)
		}
		nodes := randomNodes(rng, 3+rng.IntN(4), base.TotalBytes())
		with, err := New(nodes, Config{Models: []ModelSpec{base}, Pipelines: 2, Catalogue: catalogue})
		if err != nil {
			t.Fatal(err)
		}
		without, err := New(nodes, Config{Models: []ModelSpec{base}, Pipelines: 2})
		if err != nil {
			t.Fatal(err)
		}
		if a, b := fmt.Sprint(with.Plan().PipelinesOf("base")), fmt.Sprint(without.Plan().PipelinesOf("base")); a != b {
			t.Fatalf("case %d: experts moved the base\n%s\n%s", i, a, b)
		}
		if err := with.Plan().Sound(); err != nil {
			t.Fatal(err)
		}
		// What the policy chose stands whole: an expert is placed or absent.
		if u := with.Plan().Unplaced; slices.ContainsFunc(u, func(u Unplaced) bool { return u.Model != "base" }) {
			t.Fatalf("case %d: chosen and not placed: %v", i, u)
		}
	}
}

func TestExpertsComeAndGoFirst(t *testing.T) {
	expert := ModelSpec{ID: "e", Layers: 4, LayerBytes: []int64{1}}
	s := newSwarm(t, threeNodes(), Config{Catalogue: []ModelSpec{expert}})
	if w := s.Status().Waiting; !slices.Equal(w, []string{"e"}) {
		t.Fatalf("waiting %v", w)
	}
	if err := s.AddNode(NodeProfile{ID: "d", MemoryBytes: 9, Score: 1}); err != nil {
		t.Fatal(err)
	}
	if w := s.Status().Waiting; len(w) != 0 {
		t.Fatalf("waiting %v after there is room: %s", w, chainsText(s.Plan()))
	}
	if _, err := s.RouteModel("e", Request{}); err != nil {
		t.Error(err)
	}
	if err := s.RemoveNode("d"); err != nil {
		t.Fatal(err)
	}
	wantState(t, s, Healthy) // the base kept its copies
	if w := s.Status().Waiting; !slices.Equal(w, []string{"e"}) {
		t.Errorf("waiting %v after the room is gone", w)
	}
}

// Random lives: after every event the state follows from who lives, the plan
// is sound, and what is routed is valid.
func TestRandomLives(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for range 150 {
		m := randomModel(rng, "m")
		nodes := randomNodes(rng, 2+rng.IntN(5), m.TotalBytes())
		s, err := New(nodes, Config{Models: []ModelSpec{m}, Pipelines: 1 + rng.IntN(2)})
		if err != nil {
			t.Fatal(err)
		}
		for k := range 25 {
			id := fmt.Sprintf("n%02d", rng.IntN(8))
			switch rng.IntN(5) {
			case 0, 1:
				rescue, err := s.MarkDown(id)
				if err == nil && rescue.Uses(id) {
					t.Fatalf("the rescue of %s runs through it: %v", id, rescue)
				}
			case 2:
				_ = s.MarkAlive(id)
			case 3:
				_ = s.AddNode(NodeProfile{ID: id, MemoryBytes: rng.Int64N(m.TotalBytes() + 1), Score: 1})
			case 4:
				_ = s.RemoveNode(id)
			}
			checkLife(t, s, k)
		}
	}
}

func checkLife(t *testing.T, s *Swarm, k int) {
	t.Helper()
	if err := s.Plan().Sound(); err != nil {
		t.Fatalf("event %d: %v", k, err)
	}
	st := s.Status()
	live, missing := 0, 0
	for _, p := range st.Pipelines {
		if p.Live {
			live++
		}
	}
	for _, u := range st.Missing {
		missing += u.Copies
	}
	want := Degraded
	switch {
	case len(st.Alive) == 0:
		want = Failed
	case live == len(st.Pipelines) && missing == 0 && len(st.Uncovered) == 0:
		want = Healthy
	}
	if st.State != want {
		t.Fatalf("event %d: state %s, want %s: %+v", k, st.State, want, st)
	}
	route, err := s.Route(Request{})
	if (err == nil) != (len(st.Pipelines) > 0 && len(st.Uncovered) == 0) {
		t.Fatalf("event %d: route %v, %v with %+v", k, route, err, st)
	}
	if err == nil {
		m, _ := s.Plan().Model("m")
		if err := ValidateRoute(route, s.State(), RouteCheck{Window: &LayerRange{0, m.Layers - 1}}); err != nil {
			t.Fatalf("event %d: %v", k, err)
		}
	}
}
