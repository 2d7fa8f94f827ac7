package admission

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/control"
	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/dispatch"
	"hecate/swarm"
)

// pair is two gateways that share one node, which reports every 20 ms, as often as
// they tell each other what they want.
type pair struct {
	gateways [2]*Admission
	swarms   [2]*dispatch.Dispatcher
	cells    int
	deaf     bool // nobody hears what the other one wants: to see what that would mean
	sequence uint64
}

func newPair(t *testing.T, cells int) *pair {
	t.Helper()
	p := &pair{cells: cells}
	for i := range p.gateways {
		p.swarms[i] = dispatch.New(dispatch.Config{})
		p.swarms[i].SetPlan(&swarm.Plan{
			Models:    []swarm.ModelSpec{{ID: "m", Layers: 1}},
			Pipelines: []swarm.Pipeline{{Model: "m", Stages: []swarm.Stage{{Node: "n", Layers: swarm.Layers(0, 0)}}}},
		})
		p.gateways[i] = New(p.swarms[i], Limits{Gateway: fmt.Sprint("g", i), Patience: time.Hour})
	}
	p.talk()
	return p
}

// held is what the answers of both have of the node.
func (p *pair) held() (cells int) {
	for _, a := range p.gateways {
		for _, m := range a.Snapshot().Models {
			cells += int(m.RunningCells)
		}
	}
	return cells
}

func (p *pair) talk() {
	p.sequence++
	state := swarm.NodeState{ID: "n", LatencyMS: swarm.Measured(5), Load: swarm.Measured(0), Score: swarm.Measured(10), Fragments: []swarm.Fragment{{Model: "m", Layers: swarm.Layers(0, 0)}}}
	h := &control.Health{Node: "n", Incarnation: 1, Sequence: p.sequence, State: state, Cells: p.cells, FreeCells: max(0, p.cells-p.held())}
	for i, a := range p.gateways {
		p.swarms[i].SetView(&control.View{Nodes: map[string]swarm.NodeState{"n": state}, Members: []control.Member{{ID: "n", Status: control.StatusAlive, Heard: time.Now(), Health: h}}})
		if !p.deaf {
			a.Heed(fmt.Sprint("g", 1-i), p.gateways[1-i].Claims())
		}
	}
}

// run lets answers run over each gateway until all have ended.
func (p *pair) run(t *testing.T, answers [2][]*teller) {
	t.Helper()
	over := make(chan struct{})
	var talking, telling sync.WaitGroup
	talking.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(20 * time.Millisecond):
				p.talk()
			}
		}
	})
	for g, all := range answers {
		for _, c := range all {
			telling.Go(func() { c.err = c.run(t.Context(), p.gateways[g]) })
		}
	}
	telling.Wait()
	close(over)
	talking.Wait()
	for g, all := range answers {
		for i, c := range all {
			if c.err != nil {
				t.Errorf("answer %d over gateway %d after %d tokens: %v", i, g, c.tokens, c.err)
			}
		}
	}
	for _, a := range p.gateways {
		left(t, a)
		if claims := a.Claims(); len(claims) != 0 {
			t.Errorf("claims are left: %v", claims)
		}
	}
}

// Answers of two gateways that all want to grow at once all end, and none gives way
// more often than it would within one gateway.
func TestAnswersOfTwoGatewaysGrow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPair(t, 1000)
		var all []*teller
		for i := range 24 {
			all = append(all, &teller{prompt: 20, length: 800, most: 850, portion: 100, started: time.Duration(i) * time.Millisecond})
		}
		p.run(t, [2][]*teller{all[:12], all[12:]})
		gave, again := 0, 0
		for _, c := range all {
			gave, again = gave+c.gave, again+c.again
			if c.gave > 800/100 {
				t.Errorf("one answer gave way %d times", c.gave)
			}
		}
		t.Logf("gave way %d times, %d tokens computed again for %d", gave, again, len(all)*820)
		if gave > 3*len(all) {
			t.Errorf("%d answers gave way %d times", len(all), gave)
		}
	})
}

// A long answer of one gateway comes to its end although short ones keep coming over
// the other one, which alone would always take what becomes free.
func TestALongAnswerIsNotStarvedByAnotherGateway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPair(t, 2000)
		long := &teller{prompt: 50, length: 1500, most: 1600, portion: 100}
		var short []*teller
		for i := range 400 {
			short = append(short, &teller{prompt: 30, length: 150, most: 300, portion: 100, started: time.Duration(i) * 200 * time.Millisecond})
		}
		p.run(t, [2][]*teller{{long}, short})
		waited := time.Duration(0)
		for _, c := range short {
			waited = max(waited, c.waited, c.longest)
		}
		t.Logf("the long one gave way %d times and waited %s at most; the short ones waited %s", long.gave, long.longest, waited)
		if long.gave > 1 || long.longest > 10*time.Second || waited > 30*time.Second {
			t.Errorf("the long one gave way %d times and waited %s, the short ones %s", long.gave, long.longest, waited)
		}
	})
}

// Younger answers of another gateway make room for an older one: it keeps what it has.
func TestYoungerAnswersOfAnotherGatewayGiveWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPair(t, 1000) // 875 to sell
		old := &teller{prompt: 20, length: 600, most: 600, portion: 100}
		young := &teller{prompt: 20, length: 600, most: 600, portion: 100, started: time.Second}
		p.run(t, [2][]*teller{{old}, {young}})
		if old.gave != 0 || young.gave == 0 {
			t.Errorf("the older one gave way %d times, the younger one %d times", old.gave, young.gave)
		}
	})
}

// While an answer of another gateway waits nobody who has not begun gets room, until
// it has it or its gateway is gone.
func TestNewcomersWaitForAnswersOfOtherGateways(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 1000)
		a := New(f, Limits{Gateway: "g1", Patience: 10 * time.Second})
		want := map[string]Claim{"m": {Oldest: time.Now().Add(-time.Minute)}}
		a.Heed("g0", want)
		time.AfterFunc(2*time.Second, func() { a.Heed("g0", want) }) // it is said again
		time.AfterFunc(4*time.Second, func() { a.Heed("g0", nil) })
		cs := many(3, "k", 100, time.Second)
		crowd(a, cs).Wait()
		for i, c := range cs {
			if c.err != nil || c.waited.Round(10*time.Millisecond) != 4*time.Second {
				t.Errorf("request %d: %v after %s", i, c.err, c.waited)
			}
		}
		if len(a.mu.queues["m"].afar) != 0 {
			t.Error("what a gateway claimed that is gone is remembered")
		}
		settled(t, a, f)
	})
}

// An answer grows, and comes back, beside younger ones of other gateways; and gives
// way to older ones.
func TestAgeGoesOverGateways(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 1000)
		a := New(f, Limits{Gateway: "g1"})
		n := answer.Need{Model: "m", PromptTokens: 10, OutputTokens: 800, Cells: 100, Next: 100}
		older := time.Now()
		time.Sleep(time.Second)
		g, err := a.Choose(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		a.Heed("g2", map[string]Claim{"m": {Oldest: time.Now().Add(time.Second)}})
		n.Cells = 200
		if err := a.Grow(t.Context(), n, g); err != nil {
			t.Errorf("beside a younger one: %v", err)
		}
		a.Heed("g0", map[string]Claim{"m": {Oldest: older, Holds: true}})
		n.Cells = 300
		if err := a.Grow(t.Context(), n, g); err != nil {
			t.Errorf("beside an older one that holds on to what it has: %v", err)
		}
		a.Heed("g0", map[string]Claim{"m": {Oldest: older}})
		n.Cells = 400
		if err := a.Grow(t.Context(), n, g); !errors.Is(err, dispatch.ErrFull) {
			t.Errorf("beside an older one that waits: %v", err)
		}
		time.AfterFunc(3*time.Second, func() { a.Heed("g0", nil) })
		n.Begun, n.PromptTokens = true, 200
		began := time.Now()
		if g, err = a.GiveWay(t.Context(), n, g, nil); err != nil || time.Since(began).Round(time.Millisecond) != 3*time.Second {
			t.Errorf("came back with %v after %s", err, time.Since(began))
		}
		a.Release(g)
		a.Heed("g2", nil)
		settled(t, a, f)
	})
}

// A clock that is set back does not turn the order of answers round.
func TestAgesOnlyGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, 1, 1000)
		a := New(f, Limits{})
		a.mu.latest = time.Now().Add(time.Hour) // it was
		var ages []time.Time
		for range 3 {
			g, err := a.Choose(t.Context(), need("", 10))
			if err != nil {
				t.Fatal(err)
			}
			ages = append(ages, a.mu.tickets[g.Token].admitted)
			defer a.Release(g)
		}
		if !ages[1].After(ages[0]) || !ages[2].After(ages[1]) {
			t.Errorf("admitted at %v", ages)
		}
	})
}
