//go:build !noengine

package test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"hecate/test/harness"
)

// TestAKillOfALongAnswer: with more than 256 tokens of context the route's nodes
// have shadows, which a rescue takes over as far as they have come. The text is
// that of the undisturbed run all the same.
func TestAKillOfALongAnswer(t *testing.T) {
	t.Parallel()
	s := harness.Up(t, "--allow-chaos")
	question := strings.Repeat("A red fox found an old lantern in a busy harbour. ", 22) + harness.Story
	more := map[string]any{"max_tokens": 120}
	a := s.Ask(question, more)
	if n := a.Usage.PromptTokens; n < 256 || a.Usage.CompletionTokens < 60 {
		t.Fatalf("%d prompt tokens and %d generated: no shadow comes far", n, a.Usage.CompletionTokens)
	}
	want := a.Text()
	for stage := range 2 {
		for _, at := range []int{2, 30, 58} {
			s.AwaitHealthy()
			s.Post(context.Background(), "/v1/swarm/chaos/arm", map[string]any{"stage": stage, "at_token": at, "action": "kill"})
			st, err := s.AskStream(context.Background(), question, more, nil)
			if err != nil || st.Text != want || !st.Done || st.Broken != nil || st.Rescues < 1 {
				t.Errorf("stage %d killed before token %d: %v, %d rescues, got %q, want %q", stage, at, err, st.Rescues, st.Text, want)
			}
		}
	}
	replays := regexp.MustCompile(`\\?"replayed\\?":(\d+)`).FindAllStringSubmatch(s.Log(), -1)
	if len(replays) < 6 {
		t.Errorf("%d rescues are told of in the log, want 6", len(replays))
	}
	t.Logf("replayed: %v", replays)
}
