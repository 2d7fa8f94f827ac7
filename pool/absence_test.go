package pool

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"hecate/pool/memnet"
)

// verdicts counts what was said of groups without a connection.
func (w *world) verdicts() (down, refused, silent int) {
	return w.events.count(EventGroupDown), w.events.count(EventGroupRefused), w.events.count(EventGroupSilent)
}

func (w *world) wantVerdicts(down, refused, silent int) {
	w.t.Helper()
	if d, r, s := w.verdicts(); d != down || r != refused || s != silent {
		w.t.Errorf("down %d, refused %d, silent %d times; want %d, %d, %d", d, r, s, down, refused, silent)
	}
}

// wantSpared wants nobody to be lost. A group was down only if the last of its
// connections broke before the first was made again.
func (w *world) wantSpared() {
	w.t.Helper()
	if _, r, s := w.verdicts(); r+s > 0 {
		w.t.Errorf("refused %d, silent %d times", r, s)
	}
}

// goesOn opens a session as after the loss of one, and says how long that took.
func (w *world) goesOn(group string) (Session, time.Duration, error) {
	began := time.Now()
	s, err := w.pool.Open(context.Background(), group, OpenOptions{Reconnect: true, Rescue: true})
	return s, time.Since(began), err
}

// A node that lives answers the next connect: it is not lost, and a session that
// had been on it goes on there.
func TestAllConnectionsBreakAndTheNodeLives(t *testing.T) {
	for _, age := range []time.Duration{2 * time.Second, time.Minute} {
		inWorld(t, nil, func(w *world) {
			w.start("n1", echo, nil)
			w.apply("n1")
			settle(age)
			for range 3 {
				if w.net.Cut("gateway", "n1") < 2 {
					t.Fatal("too little was cut")
				}
				synctest.Wait()
				s, took, err := w.goesOn("n1")
				if err != nil || took > 250*time.Millisecond {
					t.Fatalf("after %v: %v", took, err)
				}
				mustEcho(t, s, []byte("here"))
				s.Close(CodeNormal)
				settle(5 * time.Second)
			}
			w.wantSpared()
		})
	}
}

// A process that ends takes all connections along, and its port refuses the next:
// that is known at once, and told once.
func TestAllConnectionsBreakAndTheNodeIsDead(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", hold, nil)
		w.apply("n1")
		settle(time.Minute)
		w.net.Refuse("n1", true)
		w.net.Cut("gateway", "n1")
		began := time.Now()
		synctest.Wait()
		_, took, err := w.goesOn("n1")
		var none *NoWriterError
		if !errors.As(err, &none) || took > 0 {
			t.Errorf("after %v: %v", took, err)
		}
		w.wantVerdicts(1, 1, 0)
		if d := time.Since(began); d > 0 {
			t.Errorf("known after %v", d)
		}
		settle(time.Minute)
		w.wantVerdicts(1, 1, 0)
		w.net.Refuse("n1", false)
		settle(10 * time.Second)
		w.net.Refuse("n1", true)
		w.net.Cut("gateway", "n1")
		settle(0)
		w.wantVerdicts(2, 2, 0)
	})
}

// A kill right after a reset that the node survived is found like any other.
func TestAKillRightAfterAReset(t *testing.T) {
	for _, later := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond, time.Second} {
		inWorld(t, nil, func(w *world) {
			w.net.SetLinks("gateway", "n1", memnet.Link{Delay: 5 * time.Millisecond})
			w.start("n1", hold, nil)
			w.apply("n1")
			settle(time.Minute)
			w.net.Cut("gateway", "n1")
			settle(later)
			w.net.Refuse("n1", true)
			w.net.Cut("gateway", "n1")
			settle(300 * time.Millisecond)
			if _, refused, silent := w.verdicts(); refused+silent != 1 {
				t.Errorf("%v later: refused %d, silent %d", later, refused, silent)
			}
		})
	}
}

// No answer at all: lost after lost_after, and nobody waits longer.
func TestAllConnectionsBreakAndNobodyAnswers(t *testing.T) {
	for _, patience := range []Duration{0, millis(250), seconds(1)} {
		inWorld(t, func(s *Settings) { s.LostAfter = patience }, func(w *world) {
			w.start("n1", hold, nil)
			w.apply("n1")
			settle(time.Minute)
			w.net.SilenceHost("n1", true)
			w.net.Cut("gateway", "n1")
			synctest.Wait()
			_, took, err := w.goesOn("n1")
			if err == nil || took != patience.D() {
				t.Errorf("lost_after %v: after %v: %v", patience, took, err)
			}
			synctest.Wait()
			w.wantVerdicts(1, 0, 1)
		})
	}
}

// Far away, a connect takes longer than lost_after.
func TestPatienceGrowsWithTheRoundTrip(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.net.SetLinks("gateway", "n1", memnet.Link{Delay: 100 * time.Millisecond})
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Minute)
		w.net.Cut("gateway", "n1")
		synctest.Wait()
		if _, took, err := w.goesOn("n1"); err != nil {
			t.Errorf("after %v: %v", took, err)
		}
		w.wantSpared()
	})
}

// One that had been silent for long is not waited for.
func TestASilentNodeIsLostWithItsLastConnection(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", hold, nil)
		w.apply("n1")
		settle(time.Minute)
		s := w.open("n1", OpenOptions{})
		w.net.SilenceHost("n1", true)
		<-s.Done()
		settle(time.Second)
		w.wantVerdicts(1, 0, 1)
	})
}

// whileNobodyDials brings n1 into a state in which no generation wants a connection
// to it: the one that did was dropped before it became active, and the next one
// waits for changes to merge.
func whileNobodyDials(t *testing.T, f func(w *world)) {
	inWorld(t, func(s *Settings) { s.Coalesce = seconds(5) }, func(w *world) {
		w.start("n1", echo, nil)
		w.start("n2", echo, nil)
		w.apply("n2")
		settle(time.Minute)
		w.apply("n1", "n2", "n3") // nobody listens on n3, so this never gets active
		settle(time.Minute)
		w.apply("n1", "n2")
		settle(100 * time.Millisecond)
		if g := w.group("n1"); g.Dialing != 0 || g.Contours["warm"] == 0 {
			t.Fatalf("%+v", g)
		}
		f(w)
	})
}

// Connections of a generation that was dropped serve until the next one does.
func TestANodeIsNotLeftWithoutAConnection(t *testing.T) {
	whileNobodyDials(t, func(w *world) {
		for range 60 {
			s, err := w.pool.Open(context.Background(), "n1", OpenOptions{Rescue: true})
			if err != nil {
				t.Fatal(err)
			}
			mustEcho(t, s, []byte("here"))
			s.Close(CodeNormal)
			settle(200 * time.Millisecond)
		}
		if g := w.group("n1"); g.FloorCurrent != 3 || g.Contours["active"] != 3 {
			t.Errorf("%+v: the dropped generation's connections are still there", g)
		}
	})
}

// A node that dies while no generation dials it is found all the same, and one
// that lives is not condemned.
func TestBrokenWhileNobodyDials(t *testing.T) {
	for _, dead := range []bool{false, true} {
		whileNobodyDials(t, func(w *world) {
			w.net.Refuse("n1", dead)
			if w.net.Cut("gateway", "n1") == 0 {
				t.Fatal("nothing was cut")
			}
			synctest.Wait()
			_, refused, silent := w.verdicts()
			if (refused == 1) != dead || silent != 0 {
				t.Errorf("dead %v: refused %d, silent %d at once", dead, refused, silent)
			}
			settle(time.Second)
			if _, refused, silent = w.verdicts(); (refused == 1) != dead || silent != 0 {
				t.Errorf("dead %v: refused %d, silent %d", dead, refused, silent)
			}
		})
	}
}

// Of several addresses that worked, all must refuse.
func TestANodeWithTwoAddressesIsLostByBoth(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.start("n1b", echo, func(c *ServerConfig) { c.NodeID = "n1" })
		w.applyMap(Map{Groups: map[string]Group{"n1": GroupOf("n1:1", "n1b:1")}})
		settle(time.Minute)
		w.net.Refuse("n1", true)
		w.net.Cut("gateway", "n1")
		w.net.Cut("gateway", "n1b")
		synctest.Wait()
		s, took, err := w.goesOn("n1")
		if err != nil {
			t.Fatalf("after %v: %v", took, err)
		}
		mustEcho(t, s, []byte("by the other way"))
		settle(time.Second)
		w.wantSpared()
		w.net.Refuse("n1b", true)
		w.net.Cut("gateway", "n1b")
		settle(300 * time.Millisecond)
		if _, refused, silent := w.verdicts(); refused+silent != 1 {
			t.Errorf("refused %d, silent %d", refused, silent)
		}
	})
}

// A node that connects to us comes back by itself.
func TestReverseConnectionsBreak(t *testing.T) {
	reverseWorld(t, func(w *world, n *node) {
		w.applyMap(reverseMap("n1"))
		settle(time.Minute)
		w.net.Cut("gateway", "n1")
		synctest.Wait()
		s, took, err := w.goesOn("n1")
		if err != nil || took > 250*time.Millisecond {
			t.Fatalf("after %v: %v", took, err)
		}
		mustEcho(t, s, []byte("back"))
		s.Close(CodeNormal)
		settle(time.Minute)
		w.wantSpared()
		n.cancel() // like any end of the process
		<-n.done
		n.done = nil
		settle(time.Second)
		if _, took, err = w.goesOn("n1"); err == nil {
			t.Errorf("after %v: it is there", took)
		}
	})
}

// Nobody is told of a group that was never there, or that nobody wants.
func TestNoVerdictOnStrangers(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n2", echo, nil)
		w.apply("n1", "n2") // nobody listens on n1
		settle(time.Minute)
		w.wantVerdicts(0, 0, 0)
		w.apply("n1")
		settle(time.Minute)
		w.wantVerdicts(0, 0, 0)
	})
}
