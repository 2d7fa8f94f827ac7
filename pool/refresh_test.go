package pool

import (
	"testing"
	"testing/synctest"
	"time"

	"hecate/pool/memnet"
)

func TestIdleWritersAreReplacedFirstThenDrained(t *testing.T) {
	inWorld(t, func(s *Settings) { s.Floor = FloorStatic }, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		for range 200 {
			settle(time.Second)
			if g := w.group("n1"); g.FloorCurrent < 3 {
				t.Fatalf("below the floor: %+v", g)
			}
		}
		snap := w.pool.Snapshot()
		n := snap.Replacements["committed"]
		if n < 9 || n > 18 {
			t.Errorf("%d replacements in 200 s at 45 s", n)
		}
		for _, ws := range snap.Writers {
			if ws.Idle > 50*time.Second {
				t.Errorf("idle for %v: %+v", ws.Idle, ws)
			}
		}
	})
}

func TestIdleRefreshOffReplacesNothing(t *testing.T) {
	inWorld(t, func(s *Settings) { s.IdleRefresh = 0 }, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(10 * time.Minute)
		snap := w.pool.Snapshot()
		if snap.Replacements["started"] != 0 || snap.Connects["ok"] != 3 {
			t.Errorf("%v %v", snap.Replacements, snap.Connects)
		}
	})
}

func TestBusyWritersAreNotRefreshed(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		s := w.open("n1", OpenOptions{})
		settle(5 * time.Minute)
		mustEcho(t, s, []byte("undisturbed"))
		select {
		case <-s.Draining():
			t.Error("a writer in use was replaced")
		default:
		}
		s.Close(CodeNormal)
	})
}

func TestIdleRefreshBelowTheFloor(t *testing.T) {
	inWorld(t, func(s *Settings) { s.Floor = FloorStatic; s.BindStale = BindStaleAlways }, func(w *world) {
		n := w.start("n1", echo, nil)
		w.apply("n1")
		settle(30 * time.Second)
		// Two of three die, and the node takes nobody new for a while.
		w.net.Refuse("n1", true)
		conns := n.srv.connections()
		for _, c := range conns[:2] {
			c.link.fail(linkFault{why: lossReset, detail: "test"})
		}
		settle(20 * time.Second) // the last one is due, and cannot be replaced
		if g := w.group("n1"); g.FloorCurrent != 1 {
			t.Fatalf("%+v: want the last writer to serve on", g)
		}
		if w.pool.Snapshot().Replacements["aborted"] == 0 {
			t.Error("no replacement was tried below the floor")
		}
		w.net.Refuse("n1", false)
		settle(time.Minute)
		if g := w.group("n1"); g.FloorCurrent != 3 {
			t.Errorf("%+v", g)
		}
	})
}

func TestRotateReplacesEveryWriter(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		s := w.open("n1", OpenOptions{})
		w.pool.Rotate()
		settle(5 * time.Second)
		mustEcho(t, s, []byte("runs on"))
		snap := w.pool.Snapshot()
		if snap.Replacements["committed"] != 3 {
			t.Errorf("%v", snap.Replacements)
		}
		for _, ws := range snap.Writers {
			if ws.ID <= 3 && ws.Contour != "draining" {
				t.Errorf("not rotated: %+v", ws)
			}
		}
		s.Close(CodeNormal)
	})
}

// TestCancelledReplacement: the generation that wanted the successor ends while
// it is being connected.
func TestCancelledReplacement(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.start("n2", echo, nil)
		w.apply("n1")
		settle(time.Second)
		s := w.open("n1", OpenOptions{})
		w.net.SetLinks("gateway", "n1", longFat)
		w.pool.Rotate()
		settle(100 * time.Millisecond)
		var victim *writer
		for _, o := range w.pool.inv.writers {
			if w.pool.reg.replacementOf(o) == replPreparing {
				victim = o
			}
		}
		if victim == nil {
			t.Fatal("no replacement is under way")
		}
		w.net.SetLinks("gateway", "n1", memnet.Link{})
		w.pool.co.mu.Lock()
		w.pool.co.triggerLocked(time.Now(), 0) // a swap that overtakes it
		w.pool.co.mu.Unlock()
		w.pool.poke()
		settle(5 * time.Second)
		if got := w.pool.reg.replacementOf(victim); got != replOpen && victim.contour != contourDraining {
			t.Errorf("the victim is %v", got)
		}
		if w.pool.Snapshot().Replacements["aborted"] == 0 {
			t.Error("the abort is not counted")
		}
		mustEcho(t, s, []byte("undisturbed"))
		s.Close(CodeNormal)
	})
}

func TestReplacementWhoseVictimDies(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		n := w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		w.net.SetLinks("gateway", "n1", longFat)
		w.pool.Rotate()
		settle(100 * time.Millisecond)
		for _, c := range n.srv.connections() {
			c.link.fail(linkFault{why: lossReset, detail: "test"})
		}
		synctest.Wait()
		settle(30 * time.Second)
		snap := w.pool.Snapshot()
		if snap.Replacements["victim_gone"] == 0 {
			t.Errorf("%v", snap.Replacements)
		}
		if g := w.group("n1"); g.FloorCurrent < 3 || g.Dialing != 0 {
			t.Errorf("%+v", g)
		}
	})
}

func TestReplacementStates(t *testing.T) {
	p, g := bareRegistry()
	victim, a, b := seatOnly(p, g), seatOnly(p, g), seatOnly(p, g)
	if p.reg.prepare(victim) {
		t.Error("prepared an unpublished victim")
	}
	p.reg.publish(victim)
	if !p.reg.prepare(victim) || p.reg.prepare(victim) {
		t.Error("the second reservation did not fail")
	}
	s := newBound(t, p, victim) // preparing takes sessions
	p.reg.abort(victim)
	if !p.reg.prepare(victim) || !p.reg.commit(victim, a) {
		t.Error("no commit after an abort")
	}
	if p.reg.commit(victim, b) || p.reg.prepare(victim) {
		t.Error("replaced twice")
	}
	if err := p.reg.bind(newBound(t, p, a), victim); err != errRefusing {
		t.Errorf("bind to a retiring writer: %v", err)
	}
	if s.bound.w != victim {
		t.Error("the session of the victim moved by itself")
	}
	defer func() {
		if recover() == nil {
			t.Error("retiring -> open did not panic")
		}
	}()
	p.reg.abort(victim)
}
