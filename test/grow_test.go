//go:build !noengine

package test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"hecate/internal/engine/randmodel"
	"hecate/test/harness"
)

// upTalker is a swarm with a model of random weights, whose answers are hundreds of
// tokens long, and many as long as the context allows.
func upTalker(t *testing.T, args ...string) *harness.Swarm {
	t.Helper()
	c := randmodel.Caller(1)
	c.Context = 1024
	path := filepath.Join(t.TempDir(), "talker.gguf")
	if err := randmodel.WriteFile(path, c); err != nil {
		t.Fatal(err)
	}
	return harness.Up(t, append([]string{"--model", path}, args...)...)
}

// talk is a request that says nothing of the answer's length.
func talk(i int) (text string, more map[string]any) {
	return fmt.Sprintf("Tell me story number %d.", i), map[string]any{
		"model": "talker", "temperature": 0.9, "seed": i, "logit_bias": map[string]int{"0": -100, "1": -100, "2": -100},
	}
}

// talkTogether asks many questions at once and compares the answers with those that they
// got when there was room. meanwhile runs beside it.
func talkTogether(t *testing.T, s *harness.Swarm, want []string, meanwhile func()) (rescues int) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range want {
		wg.Go(func() {
			text, more := talk(i)
			st, err := s.AskStream(context.Background(), text, more, nil)
			if err != nil || st.Fault != nil || st.Broken != nil || !st.Done {
				t.Errorf("answer %d: %v, %+v, %v, done %v", i, err, st.Fault, st.Broken, st.Done)
				return
			}
			if st.Text != want[i] {
				t.Errorf("answer %d differs from the undisturbed one", i)
			}
			mu.Lock()
			defer mu.Unlock()
			rescues += st.Rescues
		})
	}
	meanwhile()
	wg.Wait()
	return rescues
}

// talkAlone is what each of n questions gets when there is room for all that run:
// six at a time.
func talkAlone(s *harness.Swarm, n int) []string {
	texts := make([]string, n)
	var wg sync.WaitGroup
	for lane := range 6 {
		wg.Go(func() {
			for i := lane; i < n; i += 6 {
				text, more := talk(i)
				if st, err := s.AskStream(context.Background(), text, more, nil); err != nil || !st.Done {
					s.T.Errorf("answer %d, alone: %v", i, err)
				} else {
					texts[i] = st.Text
				}
			}
		})
	}
	wg.Wait()
	if a := s.Status().Answers; a.GaveWay != 0 || a.Queued != 0 {
		s.T.Errorf("of six answers at a time some gave way: %+v", a)
	}
	return texts
}

// nothingIsHeld waits until the nodes have all cells back.
func nothingIsHeld(s *harness.Swarm) {
	s.T.Helper()
	s.Await("all is given back", 40*time.Second, func() bool {
		st := s.Status()
		for _, node := range st.Nodes {
			if node.Alive && (node.FreeCells != node.Cells || node.Sessions != 0) {
				return false
			}
		}
		return st.Answers.Running == 0 && st.Answers.Queued == 0
	})
}

// TestAnswersThatOutgrowTheRoom: many answers without a limit, which together take
// twice the cells there are, over two stages. All of them run at
// once as long as they are short; then some give way; all come to their ends, and
// say what they would have said alone.
func TestAnswersThatOutgrowTheRoom(t *testing.T) {
	t.Parallel()
	s := upTalker(t, "--nodes", "2", "--copies", "1")
	want := talkAlone(s, 24)
	most := 0
	talkTogether(t, s, want, func() {
		s.Await("most of them run", 10*time.Second, func() bool {
			a := s.Status().Answers
			most = max(most, a.Running)
			return int(a.Finished) > len(want)+2
		})
	})
	nothingIsHeld(s)
	a, cells := s.Status().Answers, s.Status().Nodes[0].Cells
	t.Logf("%d cells, %d answers of 1024, %d seen at once; gave way %d times", cells, len(want), most, a.GaveWay)
	if before := (cells - cells/8) / 1024; most <= 2*before {
		t.Errorf("%d answers were seen at once; with all their room from the beginning it would be %d", most, before)
	}
	if a.GaveWay == 0 || a.Lost != 0 || len(a.Rescues) != 0 {
		t.Errorf("gave way %d times, lost %d, rescues %v", a.GaveWay, a.Lost, a.Rescues)
	}
}

// TestADeathAmongAnswersThatGrow: a node of two whole copies is killed when there is
// no room left on the other one for its answers.
func TestADeathAmongAnswersThatGrow(t *testing.T) {
	t.Parallel()
	s := upTalker(t, "--nodes", "2", "--copies", "2")
	want := talkAlone(s, 32)
	rescues := talkTogether(t, s, want, func() {
		victim := ""
		s.Await("both nodes are busy and answers have grown", 10*time.Second, func() bool {
			busy, fullest := 0, 0
			for _, n := range s.Status().Nodes {
				if used := n.Cells - n.FreeCells; n.Sessions > 4 && used > n.Cells/2 {
					busy++
					if used > fullest {
						fullest, victim = used, n.ID
					}
				}
			}
			return busy == 2 || int(s.Status().Answers.Finished) > len(want)
		})
		if victim != "" {
			s.Signal(victim, syscall.SIGKILL)
		}
	})
	nothingIsHeld(s)
	a := s.Status().Answers
	t.Logf("gave way %d times, rescues %v", a.GaveWay, a.Rescues)
	if rescues == 0 || a.GaveWay == 0 || a.Lost != 0 {
		t.Errorf("%d rescues, gave way %d times, lost %d", rescues, a.GaveWay, a.Lost)
	}
}
