//go:build !noengine

package test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hecate/internal/report"
	"hecate/test/harness"
)

// idle says that nothing runs, waits or is held anywhere.
func idle(st report.Status) bool {
	for _, n := range st.Nodes {
		if n.Sessions != 0 || n.FreeCells != n.Cells {
			return false
		}
	}
	return st.Answers.Running == 0 && st.Answers.Queued == 0
}

// TestClientsLeaveAtRandomPoints: more clients than there is room for leave before
// the first token, in the middle, or while they wait for room. Everything is freed
// and nothing counts as lost, and those who stay have their answers.
func TestClientsLeaveAtRandomPoints(t *testing.T) {
	t.Parallel()
	s := harness.Up(t, "--nodes", "2", "--copies", "2")
	want := s.Ask(harness.Story, nil).Text()
	rng := rand.New(rand.NewPCG(1, 2))
	var clients sync.WaitGroup
	leavers := 0
	for i := range leavingClients {
		if i%4 == 3 {
			clients.Go(func() {
				st, err := s.AskPatiently(context.Background(), harness.Story, nil)
				if err != nil || st.Text != want || !st.Done {
					t.Errorf("a client that stayed: %v, done %v, got %q", err, st.Done, st.Text)
				}
			})
			continue
		}
		leavers++
		pieces, soon := rng.IntN(60), time.Duration(rng.IntN(int(200*time.Millisecond)))
		clients.Go(func() { leave(s, pieces, soon) })
	}
	clients.Wait()
	began := time.Now()
	s.Await("everything is freed", settleWait, func() bool { return idle(s.Status()) })
	a := s.Status().Answers
	t.Logf("all is freed %s after the last client was gone or done; %d of %d that were to leave did so in time", time.Since(began).Round(time.Millisecond), a.Left, leavers)
	if a.Lost != 0 || a.Left == 0 || a.Left > int64(leavers) {
		t.Errorf("lost %d, left %d of %d leavers", a.Lost, a.Left, leavers)
	}
}

// leave asks and is gone after so many pieces of text, or, with none, after a while.
func leave(s *harness.Swarm, pieces int, soon time.Duration) {
	ctx, gone := context.WithCancel(context.Background())
	defer gone()
	if pieces == 0 {
		defer time.AfterFunc(soon, gone).Stop()
	}
	seen := 0
	_, _ = s.AskStream(ctx, harness.Story, nil, func(string) {
		if seen++; seen == pieces {
			gone()
		}
	})
}

// TestHowSoonEverythingIsFreed: crowds of clients leave at one moment, some of them
// queued, some in the prefill of a long prompt, some with half an answer. How long
// it takes until the gateway and every node hold nothing is logged; nodes report what
// they hold up to a tenth of a second later.
func TestHowSoonEverythingIsFreed(t *testing.T) {
	s := harness.Up(t, "--nodes", "2", "--copies", "2")
	s.Ask(harness.Story, limit64(nil))
	rng := rand.New(rand.NewPCG(3, 4))
	long := strings.Repeat("Tell me a long story about a fox and a lantern. ", 24)
	var took []time.Duration
	queued := 0
	for range leavingCrowds {
		ctx, leave := context.WithCancel(context.Background())
		var clients sync.WaitGroup
		for i := range leavingCrowd {
			prompt := harness.Story
			if i%3 == 0 {
				prompt = long
			}
			clients.Go(func() { _, _ = s.AskStream(ctx, prompt, nil, nil) })
		}
		moment := time.Duration(rng.IntN(int(300 * time.Millisecond)))
		s.Within(moment, func() bool { queued = max(queued, s.Status().Answers.Queued); return false })
		leave()
		left := time.Now()
		s.Await("everything is freed", settleWait, func() bool { return idle(s.Status()) })
		took = append(took, time.Since(left))
		clients.Wait()
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[min(len(took)-1, int(share*float64(len(took))))].Round(time.Millisecond)
	}
	a := s.Status().Answers
	t.Logf("%d clients left in %d crowds, up to %d of them queued: everything was freed after %s (median), %s (p99), %s (worst)",
		a.Left, leavingCrowds, queued, at(0.5), at(0.99), at(1))
	if a.Lost != 0 || a.Left == 0 || queued == 0 {
		t.Errorf("lost %d, left %d, queued up to %d", a.Lost, a.Left, queued)
	}
}

// TestStuckClientsHoldNobody: clients that ask for much and never read do not keep
// others from their answers, and when they are gone nothing is left of them.
func TestStuckClientsHoldNobody(t *testing.T) {
	t.Parallel()
	s := harness.Up(t, "--nodes", "2", "--copies", "2")
	want := s.Ask(harness.Story, limit64(nil)).Text()
	var stuck []net.Conn
	for range 6 {
		// Small buffers and long events: the gateway cannot get rid of what it has.
		c := dialNarrow(t, strings.TrimPrefix(s.URL, "http://"))
		defer c.Close()
		body := fmt.Sprintf(`{"model":%q,"stream":true,"logprobs":true,"top_logprobs":20,"n":4,"temperature":0,"messages":[{"role":"user","content":%q}]}`, harness.Model, harness.Story)
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", strings.TrimPrefix(s.URL, "http://"), len(body), body)
		line, err := bufio.NewReaderSize(c, 16).ReadString('\n')
		if err != nil || !strings.Contains(line, "200") {
			t.Fatalf("%q, %v", line, err)
		}
		stuck = append(stuck, c)
		for range 3 {
			if a := s.Ask(harness.Story, limit64(nil)); a.Text() != want {
				t.Errorf("beside %d stuck clients: %q, want %q", len(stuck), a.Text(), want)
			}
		}
	}
	for _, c := range stuck {
		c.Close()
	}
	s.Await("nothing is left of the stuck clients", settleWait, func() bool { return idle(s.Status()) })
	if a := s.Status().Answers; a.Lost != 0 {
		t.Errorf("%d answers were lost", a.Lost)
	}
}

// TestLongPromptsSpread: 64 long prompts that come at once are spread evenly over
// eight equal copies. On a busy machine some are asked for a second time elsewhere,
// because their first token is late (hedges); a round in which such a second try
// won says nothing about the spread and is made again.
func TestLongPromptsSpread(t *testing.T) {
	s := harness.Up(t, "--nodes", "8", "--copies", "8")
	for range aims {
		before := s.Status()
		served := spread(t, s)
		least, most := 64, 0
		for _, n := range before.Nodes {
			least, most = min(least, served[n.ID]), max(most, served[n.ID])
		}
		t.Logf("most loaded %d prompts, least loaded %d", most, least)
		if float64(most) <= 1.3*float64(least) {
			return
		}
		if rescued(before, s.Status())["hedge"] == 0 {
			t.Fatalf("one node served %d prompts, another %d: want at most 1.3 times as many", most, least)
		}
	}
	t.Errorf("%d times second tries were faster than the first ones", aims)
}

// spread asks 64 long prompts at once, and counts whom they went to.
func spread(t *testing.T, s *harness.Swarm) map[string]int {
	t.Helper()
	prompt := strings.Repeat("Tell me a long story about a fox and a lantern. ", 24)
	served := map[string]int{}
	var mu sync.Mutex
	var clients sync.WaitGroup
	for range 64 {
		clients.Go(func() {
			a := s.AskWith(t, prompt, map[string]any{"max_tokens": 4})
			if a.Usage.PromptTokens < 200 {
				t.Errorf("a prompt of %d tokens is not long", a.Usage.PromptTokens)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, node := range nodesOf(a.Header.Get("X-Hecate-Route")) {
				served[node]++
			}
		})
	}
	clients.Wait()
	return served
}
