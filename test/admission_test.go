//go:build !noengine

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"hecate/test/harness"
)

// TestMoreAnswersThanRoom asks for four times what the nodes' KV caches hold, all
// at once. Everybody is served, and says the same, or is refused honestly; those
// who leave the queue free their places; nothing is left.
func TestMoreAnswersThanRoom(t *testing.T) {
	s := harness.Up(t, "--nodes", "2", "--copies", "1")
	// The answers may be long, so that room is kept for that, but end soon.
	short := map[string]any{"stop": "."}
	first := s.Ask(harness.Story, short)
	want := first.Text()
	cells := s.Status().Nodes[0].Cells
	each := first.Usage.PromptTokens + 256 // nothing was said of the answer's length: the first portion
	fit := (cells - cells/8) / each
	n := 4 * fit
	t.Logf("%d cells: %d answers fit, %d are asked for", cells, fit, n)

	gone, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]int{}
	ask := func(ctx context.Context) {
		code, header, body, err := s.TryPost(ctx, "/v1/chat/completions", harness.Question(harness.Story, short))
		outcome := "left"
		if err == nil {
			outcome = judge(t, code, header, body, want)
		}
		mu.Lock()
		defer mu.Unlock()
		outcomes[outcome]++
	}
	for range n {
		wg.Go(func() { ask(t.Context()) })
	}
	s.Await("a queue", 10*time.Second, func() bool { return s.Status().Answers.Queued > 0 })
	for range 3 {
		wg.Go(func() { ask(gone) })
	}
	most := 0
	s.Await("the three in the queue or done", 10*time.Second, func() bool {
		a := s.Status().Answers
		most = max(most, a.Running)
		return int(a.Finished)+a.Running+a.Queued >= n+3
	})
	began := time.Now()
	leave()
	s.Await("their places are free", time.Second, func() bool {
		a := s.Status().Answers
		return int(a.Finished)+a.Running+a.Queued+int(a.Left) >= n+3 && (a.Left == 3 || a.Queued == 0)
	})
	t.Logf("left after %s", time.Since(began).Round(time.Millisecond))
	wg.Wait()
	t.Logf("outcomes %v, at most %d seen at once, status %+v", outcomes, most, s.Status().Answers)
	if outcomes["served"]+outcomes["refused"]+outcomes["left"] != n+3 || outcomes["served"] < fit {
		t.Errorf("outcomes %v of %d", outcomes, n+3)
	}
	if most > fit {
		t.Errorf("%d answers at once, but only %d fit", most, fit)
	}
	s.Await("all is given back", 10*time.Second, func() bool {
		st := s.Status()
		for _, node := range st.Nodes {
			if node.FreeCells != node.Cells || node.Sessions != 0 {
				return false
			}
		}
		return st.Answers.Running == 0 && st.Answers.Queued == 0
	})
	if a := s.Status().Answers; a.Lost != 0 || len(a.Rescues) != 0 {
		t.Errorf("nothing failed, but: lost %d, rescues %v", a.Lost, a.Rescues)
	}
}

// judge says what came of a request, and that it was said properly.
func judge(t *testing.T, code int, header http.Header, body []byte, want string) string {
	t.Helper()
	switch code {
	case http.StatusOK:
		var a harness.Answer
		if err := json.Unmarshal(body, &a.ChatCompletion); err != nil || a.Text() != want {
			t.Errorf("served with %s, want %q", body, want)
		}
		return "served"
	case http.StatusTooManyRequests:
		retry, err := strconv.Atoi(header.Get("Retry-After"))
		if err != nil || retry < 1 || header.Get("X-Hecate-Reason") == "" {
			t.Errorf("refused with Retry-After %q and reason %q: %s", header.Get("Retry-After"), header.Get("X-Hecate-Reason"), body)
		}
		return "refused"
	}
	t.Errorf("%d: %s", code, body)
	return fmt.Sprint(code)
}
