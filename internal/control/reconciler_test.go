package control_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/control"
	"hecate/swarm"
)

// planner starts a reconciler; stop ends it as a killed process does not: it
// gives its lease up.
func (r *rig) planner(holder string, patience control.Patience) (rec *control.Reconciler, stop func()) {
	rec = control.NewReconciler(control.ReconcilerConfig{
		Store: r.store, Membership: r.membership, Planner: swarm.Planner{}.Plan, Holder: holder, Patience: patience,
	})
	ctx, cancel := context.WithCancel(r.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := rec.Run(ctx); err != nil {
			r.t.Error(err)
		}
	}()
	synctest.Wait()
	return rec, func() { cancel(); <-done }
}

// model puts a model of six layers of 1 MiB into the catalogue.
func (r *rig) model(id string) {
	r.t.Helper()
	err := control.PutModel(r.ctx, r.store, &control.ModelRecord{
		ID: id, Hash: someKey, Size: 6 << 20, ContextLength: 512, Created: time.Now(),
		Spec: swarm.ModelSpec{ID: id, Layers: 6, LayerBytes: []int64{1 << 20}, KVBytes: 16, ContextTokens: 512},
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// swarmOf starts nodes whose memory holds about two thirds of the model.
func (r *rig) swarmOf(ids ...string) (stop map[string]func(bool) error) {
	stop = map[string]func(bool) error{}
	for _, id := range ids {
		r.record(id, func(n *control.NodeRecord) { n.Profile.MemoryBytes = 5 << 20 })
		_, stop[id] = r.node(id, 1)
	}
	return stop
}

func (r *rig) plan() *control.PlanDocument {
	r.t.Helper()
	synctest.Wait()
	e, err := r.store.Get(r.ctx, control.BucketPlan, control.PlanKey)
	if err != nil {
		return nil
	}
	d := new(control.PlanDocument)
	if err := control.Decode(e.Value, d); err != nil {
		r.t.Fatal(err)
	}
	return d
}

func plannedOver(d *control.PlanDocument) (ids string) {
	for _, n := range d.Plan.Nodes {
		ids += n.Profile.ID + " "
	}
	return ids
}

func (r *rig) wantPlan(over string, copies int) *control.PlanDocument {
	r.t.Helper()
	d := r.plan()
	if d == nil {
		r.t.Fatal("no plan")
	}
	if got := plannedOver(d); got != over || len(d.Plan.Pipelines) != copies {
		r.t.Fatalf("%s over %q with %d copies, want %q and %d", d, got, len(d.Plan.Pipelines), over, copies)
	}
	return d
}

func stopAll(stops map[string]func(bool) error) {
	for _, stop := range stops {
		_ = stop(false)
	}
}

func TestTheFirstPlanWaitsForTheSwarmAndIsOne(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		_, stop := r.planner("gw", control.Patience{FirstNodes: 3})
		defer stop()
		r.model("demo")
		nodes := r.swarmOf("a", "b")
		defer stopAll(nodes)
		time.Sleep(10 * time.Second)
		if d := r.plan(); d != nil {
			t.Fatalf("%s before the third node came", d)
		}
		third := r.swarmOf("c")
		defer stopAll(third)
		time.Sleep(time.Second)
		d := r.wantPlan("a b c ", 2)
		if d.Generation != 1 || d.Epoch == 0 || d.Hash != d.Plan.Hash || d.Plan.Epoch != int64(d.Epoch) || d.Models["demo"] != someKey {
			t.Errorf("%s: %+v", d, d)
		}
		time.Sleep(time.Minute)
		if again := r.plan(); again.Generation != 1 {
			t.Errorf("%s though nothing happened", again)
		}
	})
}

func TestTheFirstPlanDoesNotWaitForEver(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		_, stop := r.planner("gw", control.Patience{FirstNodes: 9})
		defer stop()
		r.model("demo")
		defer stopAll(r.swarmOf("a", "b", "c"))
		time.Sleep(20 * time.Second)
		r.wantPlan("a b c ", 2)
	})
}

func TestADeadNodeKeepsItsPlaceForAMinute(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		_, stop := r.planner("gw", control.Patience{FirstNodes: 4})
		defer stop()
		r.model("demo")
		nodes := r.swarmOf("a", "b", "c", "d")
		defer stopAll(nodes)
		time.Sleep(time.Second)
		first := r.wantPlan("a b c d ", 2)
		_ = nodes["d"](false)
		time.Sleep(59 * time.Second)
		if d := r.plan(); d.Generation != first.Generation {
			t.Fatalf("%s too early", d)
		}
		time.Sleep(5 * time.Second)
		second := r.wantPlan("a b c ", 2)
		if second.Generation != first.Generation+1 {
			t.Errorf("generation %d after %d", second.Generation, first.Generation)
		}
		r.enrol("d", 2)
		_, back := r.node("d", 2)
		defer func() { _ = back(false) }()
		time.Sleep(2 * time.Second)
		r.wantPlan("a b c d ", 2)
	})
}

func TestANodeThatIsRestartedCausesNoPlan(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		_, stop := r.planner("gw", control.Patience{FirstNodes: 3})
		defer stop()
		r.model("demo")
		nodes := r.swarmOf("a", "b", "c")
		defer stopAll(nodes)
		time.Sleep(time.Second)
		first := r.plan()
		_ = nodes["c"](true) // goodbye, and back within the patience
		time.Sleep(2 * time.Second)
		r.record("c", func(n *control.NodeRecord) { n.Incarnation, n.Profile.Endpoints = 2, []string{"127.0.0.1:9999"} })
		_, again := r.node("c", 2)
		defer func() { _ = again(false) }()
		time.Sleep(2 * time.Minute)
		if d := r.plan(); d.Generation != first.Generation {
			t.Errorf("%s after %s", d, first)
		}
	})
}

func TestRemovedAndPausedNodes(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		_, stop := r.planner("gw", control.Patience{FirstNodes: 4})
		defer stop()
		r.model("demo")
		nodes := r.swarmOf("a", "b", "c", "d")
		defer stopAll(nodes)
		time.Sleep(time.Second)
		first := r.plan()
		if err := control.SetDesired(r.ctx, r.store, "a", control.DesiredPaused); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		paused := r.plan()
		if paused.Generation != first.Generation+1 || paused.Hash != first.Hash || paused.DesiredOf("a") != control.DesiredPaused {
			t.Errorf("%s, then paused: %s %v", first, paused, paused.Desired)
		}
		if err := control.SetDesired(r.ctx, r.store, "d", control.DesiredRemoved); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		removed := r.wantPlan("a b c ", 2)
		if removed.DesiredOf("d") != control.DesiredRemoved || removed.DesiredOf("b") != control.DesiredActive {
			t.Errorf("desired: %v", removed.Desired)
		}
	})
}

func TestALeavingNodeGoesWhenOthersHaveTakenOver(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		r.obedient = true
		_, stop := r.planner("gw", control.Patience{FirstNodes: 3})
		defer stop()
		r.model("demo")
		nodes := r.swarmOf("a", "b", "c")
		defer stopAll(nodes)
		time.Sleep(3 * time.Second)
		r.wantPlan("a b c ", 2)
		defer stopAll(r.swarmOf("d"))
		time.Sleep(5 * time.Second)
		settled := r.wantPlan("a b c d ", 2)
		if !settled.Stage.Empty() {
			t.Fatalf("still on the way: %s", settled.Stage)
		}
		if err := control.SetDesired(r.ctx, r.store, "a", control.DesiredLeaving); err != nil {
			t.Fatal(err)
		}
		var stages []control.Stage
		for range 60 {
			time.Sleep(200 * time.Millisecond)
			d := r.plan()
			if n := len(stages); n == 0 || stages[n-1].String() != d.Stage.String() {
				stages = append(stages, d.Stage)
			}
		}
		kept := false
		for _, s := range stages {
			kept = kept || len(s.Keep["a"]) > 0
		}
		last := r.wantPlan("b c d ", 2)
		if !kept || !last.Stage.Empty() || last.DesiredOf("a") != control.DesiredRemoved {
			t.Errorf("stages %v; at the end %v, desired %v", stages, last.Stage, last.Desired)
		}
	})
}

func TestADrainedNodeStaysAndComesBack(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		r.obedient = true
		_, stop := r.planner("gw", control.Patience{FirstNodes: 4})
		defer stop()
		r.model("demo")
		defer stopAll(r.swarmOf("a", "b", "c", "d"))
		time.Sleep(3 * time.Second)
		r.wantPlan("a b c d ", 2)
		if err := control.SetDesired(r.ctx, r.store, "a", control.DesiredDrained); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		d := r.wantPlan("b c d ", 2)
		if d.DesiredOf("a") != control.DesiredDrained || len(d.Wanted("a")) != 0 {
			t.Errorf("drained: %v holds %v", d.Desired, d.Wanted("a"))
		}
		r.wantStatus("a", "alive")
		if err := control.SetDesired(r.ctx, r.store, "a", control.DesiredActive); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		r.wantPlan("a b c d ", 2)
	})
}

func TestANewLeaderFencesTheOldOne(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		r.model("demo")
		nodes := r.swarmOf("a", "b", "c")
		defer stopAll(nodes)
		first, stopFirst := r.planner("one", control.Patience{FirstNodes: 3})
		second, stopSecond := r.planner("two", control.Patience{FirstNodes: 3})
		defer stopSecond()
		time.Sleep(time.Minute)
		if !first.Leading() || second.Leading() {
			t.Fatalf("leading: %v and %v", first.Leading(), second.Leading())
		}
		old := r.plan()
		stopFirst()
		time.Sleep(5 * time.Second)
		d := r.plan()
		if !second.Leading() || d.Epoch <= old.Epoch || d.Generation != old.Generation+1 || d.Hash != old.Hash {
			t.Fatalf("%s, then %s", old, d)
		}
		// The deposed leader writes once more, over what it reads.
		stale := *old
		stale.Generation = d.Generation + 1
		r.overwrite(&stale)
		time.Sleep(5 * time.Second)
		if healed := r.plan(); healed.Epoch != d.Epoch || healed.Generation <= stale.Generation {
			t.Errorf("the store holds %s after %s", healed, &stale)
		}
	})
}

// overwrite writes a plan as somebody who reads, and then writes, can.
func (r *rig) overwrite(d *control.PlanDocument) {
	r.t.Helper()
	data, err := control.Encode(d)
	if err != nil {
		r.t.Fatal(err)
	}
	e, err := r.store.Get(r.ctx, control.BucketPlan, control.PlanKey)
	if err != nil {
		_, err = r.store.Create(r.ctx, control.BucketPlan, control.PlanKey, data)
	} else {
		_, err = r.store.CompareAndSet(r.ctx, control.BucketPlan, control.PlanKey, data, e.Revision)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestFollowersGetTheNewestPlanAndNoDeposedOnes(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(r.ctx)
		var got []uint64
		entered, leave := make(chan struct{}), make(chan struct{})
		done := make(chan error, 1)
		go func() {
			done <- control.FollowPlan(ctx, r.store, nil, func(d *control.PlanDocument) {
				got = append(got, d.Generation)
				entered <- struct{}{}
				<-leave
			})
		}()
		write := func(epoch, generation uint64) {
			r.overwrite(&control.PlanDocument{Epoch: epoch, Generation: generation, Plan: &swarm.Plan{}})
			synctest.Wait()
		}
		write(5, 1)
		<-entered
		for generation := uint64(2); generation <= 6; generation++ {
			write(5, generation) // while the reader is busy with the first
		}
		write(4, 99) // deposed
		leave <- struct{}{}
		<-entered
		write(6, 3) // a new leader that lost the count
		leave <- struct{}{}
		<-entered
		leave <- struct{}{}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(got) != 3 || got[0] != 1 || got[1] != 6 || got[2] != 3 {
			t.Errorf("generations %v, want 1, 6, 3", got)
		}
	})
}

func TestTheDataMapHoldsTheLivingAndItsRevisionNeverRepeats(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		_, stop := r.planner("gw", control.Patience{FirstNodes: 3})
		defer stop()
		r.model("demo")
		var mapper control.DataMapper
		nodes := r.swarmOf("a", "b", "c")
		defer stopAll(nodes)
		if m, changed := mapper.Map(nil, r.membership.View()); changed && len(m.Groups) != 0 {
			t.Errorf("without a plan: %v", m.Groups)
		}
		time.Sleep(time.Second)
		look := func() (control.DataMap, bool) { synctest.Wait(); return mapper.Map(r.plan(), r.membership.View()) }
		all, changed := look()
		if !changed || len(all.Groups) != 3 || len(all.Groups["a"].IP4) != 1 || all.Groups["a"].IP4[0] != "127.0.0.1:7000" {
			t.Fatalf("all: %+v", all)
		}
		if _, changed := look(); changed {
			t.Error("changed though nothing happened")
		}
		_ = nodes["c"](false)
		time.Sleep(3 * time.Second)
		two, changed := look()
		if !changed || len(two.Groups) != 2 || two.Revision <= all.Revision {
			t.Fatalf("two: %+v", two)
		}
		r.record("c", func(n *control.NodeRecord) {
			n.Incarnation, n.Profile.Endpoints = 2, []string{"[::1]:7001", "127.0.0.1:7001"}
		})
		_, again := r.node("c", 2)
		defer func() { _ = again(false) }()
		time.Sleep(100 * time.Millisecond)
		back, _ := look()
		if g := back.Groups["c"]; len(g.IP4) != 1 || len(g.IP6) != 1 || g.IP6[0] != "[::1]:7001" {
			t.Errorf("c: %+v", g)
		}
		r.record("c", func(n *control.NodeRecord) { n.Profile.Endpoints = []string{"127.0.0.1:7000"} })
		time.Sleep(100 * time.Millisecond)
		if same, changed := look(); !changed || same.Hash != all.Hash || same.Revision <= back.Revision {
			t.Errorf("the first map again: %+v", same)
		}
	})
}

// lateStore lets an operator resume a node just before the planner, which has not
// heard of that, looks at its record to remove it.
type lateStore struct {
	control.Store
	resume func()
}

func (s *lateStore) Get(ctx context.Context, b control.Bucket, key string) (control.Entry, error) {
	if s.resume != nil && b == control.BucketNodes {
		resume := s.resume
		s.resume = nil
		resume()
	}
	return s.Store.Get(ctx, b, key)
}

func TestANodeThatIsResumedInTheLastMomentIsNotRemoved(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		r.obedient = true
		late := &lateStore{Store: r.store}
		rec := control.NewReconciler(control.ReconcilerConfig{
			Store: late, Membership: r.membership, Planner: swarm.Planner{}.Plan, Holder: "gw", Patience: control.Patience{FirstNodes: 4},
		})
		ctx, cancel := context.WithCancel(r.ctx)
		done := make(chan error, 1)
		go func() { done <- rec.Run(ctx) }()
		r.model("demo")
		defer stopAll(r.swarmOf("a", "b", "c", "d"))
		time.Sleep(5 * time.Second)
		late.resume = func() {
			if err := control.SetDesired(r.ctx, r.store, "a", control.DesiredActive); err != nil {
				t.Error(err)
			}
		}
		if err := control.SetDesired(r.ctx, r.store, "a", control.DesiredLeaving); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if d := r.wantPlan("a b c d ", 2); d.DesiredOf("a") != control.DesiredActive {
			t.Errorf("desired: %v", d.Desired)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A swarm without room to spare goes on serving from nodes that are to be emptied,
// until there is room, or the operator insists.
func TestDrainedNodesKeepWhatNobodyCanTakeOver(t *testing.T) {
	for _, want := range []control.Desired{control.DesiredDrained, control.DesiredEvacuated, control.DesiredLeaving} {
		t.Run(string(want), func(t *testing.T) {
			inTime(t, func(t *testing.T, r *rig) {
				r.obedient = true
				_, stop := r.planner("gw", control.Patience{FirstNodes: 3})
				defer stop()
				r.model("demo")
				defer stopAll(r.swarmOf("a", "b", "c"))
				time.Sleep(5 * time.Second)
				r.wantPlan("a b c ", 2)
				for _, id := range []string{"a", "b"} { // c alone has no room for the model
					if err := control.SetDesired(r.ctx, r.store, id, want); err != nil {
						t.Fatal(err)
					}
					time.Sleep(10 * time.Second)
				}
				d := r.wantPlan("c ", 0)
				if held := heldLayers(d, "a", "b", "c"); held != 6 || d.DesiredOf("b") != want {
					t.Errorf("%d of 6 layers are still held, desired %v, %s", held, d.Desired, d.Stage)
				}
				again := r.plan()
				time.Sleep(time.Minute)
				if d := r.plan(); d.Generation != again.Generation {
					t.Errorf("%s, then %s, though nothing happened", again, d)
				}
				defer stopAll(r.swarmOf("d", "e"))
				time.Sleep(20 * time.Second)
				d = r.wantPlan("c d e ", 2)
				if held := heldLayers(d, "a", "b"); held != 0 || !d.Stage.Empty() {
					t.Errorf("others took over, and %d layers are still on the drained nodes: %s", held, d.Stage)
				}
			})
		})
	}
}

// A model that was taken out is let go, drained or not.
func TestDrainedNodesDropAModelThatWasTakenOut(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		r.obedient = true
		_, stop := r.planner("gw", control.Patience{FirstNodes: 3})
		defer stop()
		r.model("demo")
		defer stopAll(r.swarmOf("a", "b", "c"))
		time.Sleep(5 * time.Second)
		for _, id := range []string{"a", "b"} {
			if err := control.SetDesired(r.ctx, r.store, id, control.DesiredDrained); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Second)
		if err := control.RemoveModel(r.ctx, r.store, "demo"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if d := r.plan(); heldLayers(d, "a", "b", "c") != 0 {
			t.Errorf("still kept: %s", d.Stage)
		}
	})
}

// heldLayers counts the layers that some of the nodes are to hold.
func heldLayers(d *control.PlanDocument, nodes ...string) int {
	held := map[int]bool{}
	for _, id := range nodes {
		for _, f := range d.Wanted(id) {
			for l := f.Layers.First; l <= f.Layers.Last; l++ {
				held[l] = true
			}
		}
	}
	return len(held)
}
