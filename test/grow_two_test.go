//go:build !noengine

package test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"hecate/internal/control/controltest"
	"hecate/internal/engine/randmodel"
	"hecate/test/harness"
)

// talkers is two gateways, each with answers of its own, that share two nodes.
type talkers struct {
	t        *testing.T
	gateways []*harness.Swarm
	nodes    map[string]*harness.Worker
}

// startTalkers starts them with so many NATS servers, a model of such a context, and
// nodes of such a memory.
func startTalkers(t *testing.T, servers, length int, memory string, args ...string) *talkers {
	t.Helper()
	c := randmodel.Caller(1)
	c.Context = length
	model := filepath.Join(t.TempDir(), "talker.gguf")
	if err := randmodel.WriteFile(model, c); err != nil {
		t.Fatal(err)
	}
	first, second := t.TempDir(), t.TempDir()
	accounts, errs, code := harness.Run(t, "", "serve", "--nats-config", "--data", first)
	if code != 0 {
		t.Fatalf("serve --nats-config: %s", errs)
	}
	n := startNATS(t, accounts, servers)
	s := &talkers{t: t, nodes: map[string]*harness.Worker{}}
	one := harness.ServeIn(t, first, append(append(n.flags("one"), "--model", model), args...)...)
	controltest.CopyAuthority(t, first, second)
	two := harness.ServeIn(t, second, append(n.flags("two"), args...)...)
	s.gateways = []*harness.Swarm{one, two}
	for name, g := range map[string]*harness.Swarm{"a": one, "b": two} {
		s.nodes[name] = harness.Join(t, name, "--join", g.Token(), "--memory", memory, "--score", "1")
	}
	for _, g := range s.gateways {
		g.Await("the model is ready", patience, func() bool { return listedModels(t, g)["talker"].Ready })
		g.AwaitHealthy()
	}
	return s
}

// outcome is what became of the answers over one gateway.
type outcome struct {
	mu      sync.Mutex
	told    int // they came to their ends
	cut     int // their connection broke
	rescues int
	rows    int // of prompts and answers
}

// talk asks n questions over a gateway at once, the first of which is number first,
// and compares the answers with those to the same questions when there was room. cut says that
// answers may be cut off: their gateway is to be killed.
func (s *talkers) talk(g *harness.Swarm, first int, want []string, limit int, cut bool) (wait func() *outcome) {
	out := &outcome{}
	var wg sync.WaitGroup
	for i, want := range want {
		wg.Go(func() {
			text, more := limitedTalk(first+i, limit)
			st, err := g.AskPatiently(context.Background(), text, more)
			out.mu.Lock()
			defer out.mu.Unlock()
			switch {
			case err == nil && st.Fault == nil && st.Broken == nil && st.Done:
				out.told++
				out.rescues += st.Rescues
				if st.Usage != nil {
					out.rows += st.Usage.PromptTokens + st.Usage.CompletionTokens
				}
				if st.Text != want {
					s.t.Errorf("answer %d differs from the undisturbed one", first+i)
				}
			case cut && !st.Done:
				out.cut++
			default:
				s.t.Errorf("answer %d: %v, %+v, %v, done %v", first+i, err, st.Fault, st.Broken, st.Done)
			}
		})
	}
	return func() *outcome { wg.Wait(); return out }
}

func limitedTalk(i, limit int) (string, map[string]any) {
	text, more := talk(i)
	more["stream_options"] = map[string]any{"include_usage": true}
	if limit > 0 {
		more["max_tokens"] = limit
	}
	return text, more
}

// alone is what n questions get when there is room for all that run: six at a time.
func (s *talkers) alone(n, limit int) []string {
	texts := make([]string, n)
	var wg sync.WaitGroup
	for lane := range 6 {
		wg.Go(func() {
			for i := lane; i < n; i += 6 {
				text, more := limitedTalk(i, limit)
				st, err := s.gateways[lane%2].AskStream(context.Background(), text, more, nil)
				if err != nil || !st.Done {
					s.t.Errorf("answer %d, alone: %v", i, err)
				}
				texts[i] = st.Text
			}
		})
	}
	wg.Wait()
	return texts
}

// gaveWay is how often answers did, by gateway.
func (s *talkers) gaveWay() (out []int64) {
	for _, g := range s.gateways {
		out = append(out, g.Status().Answers.GaveWay)
	}
	return out
}

// settled wants that nothing is lost and nothing held.
func (s *talkers) settled() {
	s.t.Helper()
	for i, g := range s.gateways {
		nothingIsHeld(g)
		if a := g.Status().Answers; a.Lost != 0 {
			s.t.Errorf("gateway %d lost %d answers", i, a.Lost)
		}
	}
}

// TestAnswersOfTwoGatewaysOutgrowTheRoom: over each gateway many answers, of which
// all together want several times the room there is, across two stages. Each gateway
// admits its own only; all come to their ends, and say what they would have said alone.
// Then it happens again while a gateway is killed: those of the other one go on.
func TestAnswersOfTwoGatewaysOutgrowTheRoom(t *testing.T) {
	t.Parallel()
	const each, limit = 12, 600
	s := startTalkers(t, 1, 1024, "5MiB", "--copies", "1")
	want := s.alone(2*each, limit)
	before := s.gaveWay()
	first, second := s.talk(s.gateways[0], 0, want[:each], limit, false), s.talk(s.gateways[1], each, want[each:], limit, false)
	one, two := first(), second()
	s.settled()
	gave := s.gaveWay()
	t.Logf("%d cells; gave way %v times, before that %v; of %d and %d told", s.gateways[0].Status().Nodes[0].Cells, gave, before, one.told, two.told)
	// It was seven times as often as there are answers when each gateway took what the
	// other one's answers had for free.
	if all := gave[0] + gave[1] - before[0] - before[1]; all == 0 || all > 3*2*each || one.told+two.told != 2*each {
		t.Errorf("%d answers gave way %d times, and %d were told", 2*each, all, one.told+two.told)
	}

	first, second = s.talk(s.gateways[0], 0, want[:each], limit, true), s.talk(s.gateways[1], each, want[each:], limit, false)
	s.grownAgain(2 * each)
	s.gateways[0].Kill()
	one, two = first(), second()
	s.gateways = s.gateways[1:]
	s.settled()
	if two.told != each {
		t.Errorf("%d of %d answers of the gateway that lives came to their ends", two.told, each)
	}
	if one.cut == 0 {
		t.Error("no answer of the gateway that was killed was cut off")
	}
	t.Logf("killed after %d of its answers were told and %d were not", one.told, one.cut)
}

// grownAgain waits until answers of one gateway gave way since the last time, or
// so many answers have finished.
func (s *talkers) grownAgain(many int) {
	type state struct{ gave, finished int64 }
	now := func() (st state) {
		for _, g := range s.gateways {
			a := g.Status().Answers
			st.gave, st.finished = st.gave+a.GaveWay, st.finished+a.Finished
		}
		return st
	}
	began := now()
	s.gateways[0].Await("answers give way", 5*time.Minute, func() bool {
		st := now()
		return st.gave > began.gave+2 || st.finished >= began.finished+int64(many)
	})
}
