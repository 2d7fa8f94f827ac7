//go:build !noengine

package test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hecate/internal/engine/randmodel"
	"hecate/internal/gguf"
	"hecate/test/harness"
)

// TestAFallbackModelStandsIn: with two of three nodes silent nobody can serve the
// demo model, and a tiny one, of which each node has a copy, answers for it, says
// so, and steps back by itself.
func TestAFallbackModelStandsIn(t *testing.T) {
	t.Parallel()
	tiny := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := randmodel.WriteFile(tiny, randmodel.Tiny(gguf.Q8_0, 1)); err != nil {
		t.Fatal(err)
	}
	// Just above what the demo needs: no node may hold all of it.
	s := harness.Up(t, "--node-memory", "17MiB")
	s.Do("model", "add", tiny, "--fallback-for", harness.Model, "--copies", "3")
	s.Await("both models are ready", startAgain, func() bool {
		st := s.Status()
		return len(st.Models) == 2 && st.Models[0].Ready && st.Models[1].Ready && st.State == "healthy"
	})
	want := s.Ask(harness.Story, map[string]any{"max_tokens": 8})
	if want.Model != harness.Model || want.Header.Get("X-Hecate-Degraded") != "" {
		t.Fatalf("answered by %s, although the model that was asked for lives", want.Model)
	}

	nodes := s.Status().Nodes
	for _, n := range nodes[:2] {
		s.Signal(n.ID, syscall.SIGSTOP)
	}
	a := askDegraded(t, s, nil)
	if a.Model != "tiny" || a.Header.Get("X-Hecate-Degraded") != harness.Model || a.Hecate.Degraded != harness.Model || a.Usage.CompletionTokens != 8 {
		t.Errorf("answered by %s, header %q, %+v", a.Model, a.Header.Get("X-Hecate-Degraded"), a.Hecate)
	}
	if code, header, body := s.Post(context.Background(), "/v1/chat/completions", harness.Question(harness.Story, map[string]any{"max_tokens": 8, "hecate": map[string]any{"fallback": false}})); code != 503 || header.Get("Retry-After") == "" {
		t.Errorf("who refused a fallback got %d: %s", code, body)
	}
	st, err := s.AskStream(context.Background(), harness.Story, map[string]any{"max_tokens": 8}, nil)
	if err != nil || !st.Done || st.Broken != nil {
		t.Errorf("stream: %v, %v", err, st.Broken)
	}
	if got := s.Status().Answers; got.Degraded < 2 || got.Lost != 0 {
		t.Errorf("%d degraded, %d lost", got.Degraded, got.Lost)
	}
	if out := s.Do("status"); !strings.Contains(out, "put to a fallback model") || !strings.Contains(out, "stands in for "+harness.Model) {
		t.Errorf("hecate status does not tell of it:\n%s", out)
	}

	wakeAll(t, s)
	s.Await("the model that is asked for answers again", startAgain, func() bool {
		return askDegraded(t, s, nil).Model == harness.Model
	})
	if got := s.Ask(harness.Story, map[string]any{"max_tokens": 8}); got.Text() != want.Text() {
		t.Errorf("got %q, want %q", got.Text(), want.Text())
	}
	if !strings.Contains(s.Log(), `"answered_by":"tiny"`) {
		t.Error("the log does not tell who answered")
	}
}

// askDegraded asks the demo model until something answers: while deaths are
// noticed, requests may be refused.
func askDegraded(t *testing.T, s *harness.Swarm, more map[string]any) harness.Answer {
	t.Helper()
	body := harness.Question(harness.Story, map[string]any{"max_tokens": 8})
	for k, v := range more {
		body[k] = v
	}
	a := harness.Answer{}
	s.Await("an answer", time.Minute, func() bool {
		code, header, text, err := s.TryPost(context.Background(), "/v1/chat/completions", body)
		if err != nil || code != http.StatusOK {
			return false
		}
		a = harness.Answer{Header: header}
		return json.Unmarshal(text, &a.ChatCompletion) == nil
	})
	return a
}
