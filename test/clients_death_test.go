//go:build !noengine

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"

	"hecate/test/harness"
)

// arm makes the node that runs a stage of the next request fail by itself.
func arm(t *testing.T, s *harness.Swarm, stage, token int, action string) {
	t.Helper()
	code, _, body := s.Post(context.Background(), "/v1/swarm/chaos/arm", map[string]any{"stage": stage, "at_token": token, "action": action})
	if code != http.StatusOK {
		t.Fatalf("arm: %d %s", code, body)
	}
}

// rescuesOf reads our own field, which the client keeps beside its own.
func rescuesOf(t *testing.T, extra string) int {
	t.Helper()
	var h struct {
		Rescues int `json:"rescues"`
	}
	if err := json.Unmarshal([]byte(extra), &h); err != nil {
		t.Errorf("the field hecate is %q: %v", extra, err)
	}
	return h.Rescues
}

// A node that dies in the middle of an answer costs the official client nothing:
// the text is the one it would have been.
func TestOfficialGoClientOutlivesANode(t *testing.T) {
	t.Parallel()
	s := harness.Up(t, "--allow-chaos")
	c := officialClient(s)
	want := ask(t, c, tale(80)).Choices[0].Message.Content
	for stage := range 2 {
		for _, streamed := range []bool{true, false} {
			t.Run(fmt.Sprintf("stage %d, streamed %v", stage, streamed), func(t *testing.T) {
				before := pidsOf(s)
				arm(t, s, stage, 30+stage, "kill")
				text, finish, rescues := tellTale(t, c, streamed)
				if text != want || finish != "length" {
					t.Errorf("%q (%s), want %q", text, finish, want)
				}
				if rescues != 1 {
					t.Errorf("%d rescues, want 1", rescues)
				}
				s.AwaitHealthy()
				if changed(before, pidsOf(s)) != 1 {
					t.Errorf("processes %v before, %v after: want one other", before, pidsOf(s))
				}
			})
		}
	}
	t.Run("another client", func(t *testing.T) {
		arm(t, s, 0, 40, "kill")
		text, finish, err := followPlain(context.Background(), goOpenAI(s), plainTale(80))
		if text != want || finish != "length" || err != nil {
			t.Errorf("%q (%s, %v), want %q", text, finish, err, want)
		}
		s.AwaitHealthy()
	})
	t.Run("a node that falls silent", func(t *testing.T) {
		arm(t, s, 1, 20, "stop")
		text, _, rescues := tellTale(t, c, true)
		if text != want || rescues != 1 {
			t.Errorf("%d rescues, %q, want %q", rescues, text, want)
		}
		wakeAll(t, s)
	})
}

// tellTale asks for the tale, whole or as a stream.
func tellTale(t *testing.T, c openai.Client, streamed bool) (text, finish string, rescues int) {
	t.Helper()
	if !streamed {
		a := ask(t, c, tale(80))
		return a.Choices[0].Message.Content, string(a.Choices[0].FinishReason), rescuesOf(t, a.JSON.ExtraFields["hecate"].Raw())
	}
	var last string
	acc, err := follow(context.Background(), c, tale(80), func(chunk openai.ChatCompletionChunk) { last = chunk.JSON.ExtraFields["hecate"].Raw() })
	if err != nil {
		t.Fatal(err)
	}
	return acc.Choices[0].Message.Content, string(acc.Choices[0].FinishReason), rescuesOf(t, last)
}

func pidsOf(s *harness.Swarm) map[string]int {
	out := map[string]int{}
	for _, n := range s.Status().Nodes {
		out[n.ID] = n.PID
	}
	return out
}

func changed(before, after map[string]int) (n int) {
	for id, pid := range before {
		if after[id] != pid {
			n++
		}
	}
	return n
}

// wakeAll continues the nodes that were stopped, and waits until they serve.
func wakeAll(t *testing.T, s *harness.Swarm) {
	t.Helper()
	for _, n := range s.Status().Nodes {
		wake(t, s, n.ID)
	}
	s.Await("answers again", startAgain, func() bool {
		code, _, _, err := s.TryPost(context.Background(), "/v1/chat/completions", harness.Question("Hello!", map[string]any{"max_tokens": 1}))
		return err == nil && code == http.StatusOK && s.Status().State == "healthy"
	})
}

// When the last path is gone, a client learns it: by an error after the text so
// far, or instead of an answer. A text that merely ends would be taken for whole.
func TestAStreamNeverLies(t *testing.T) {
	t.Parallel()
	s := harness.Up(t, "--nodes", "1", "--copies", "1", "--allow-chaos", "--rescue-time", "300ms")
	c := officialClient(s)
	want := ask(t, c, tale(80)).Choices[0].Message.Content
	t.Run("streamed", func(t *testing.T) {
		arm(t, s, 0, 30, "stop")
		acc, err := follow(context.Background(), c, tale(80), nil)
		if err == nil {
			t.Errorf("no error after %q", acc.Choices[0].Message.Content)
		} else if !strings.Contains(err.Error(), "no_way_on") {
			t.Errorf("%v, want the event with the code no_way_on", err)
		}
		if got := acc.Choices[0].Message.Content; got == "" || !strings.HasPrefix(want, got) {
			t.Errorf("%q came before the error, want the beginning of %q", got, want)
		}
		if acc.Choices[0].FinishReason != "" {
			t.Errorf("a lost answer finished with %q", acc.Choices[0].FinishReason)
		}
		wakeAll(t, s)
	})
	t.Run("streamed, another client", func(t *testing.T) {
		arm(t, s, 0, 30, "stop")
		if text, finish, err := followPlain(context.Background(), goOpenAI(s), plainTale(80)); err == nil || finish != "" || text == "" || !strings.HasPrefix(want, text) {
			t.Errorf("%q (%s, %v), want the beginning of %q and an error", text, finish, err, want)
		}
		wakeAll(t, s)
	})
	t.Run("streamed, on the wire", func(t *testing.T) {
		arm(t, s, 0, 30, "stop")
		st, err := s.AskStream(context.Background(), harness.Story, map[string]any{"max_tokens": 80}, nil)
		if err != nil || st.Fault == nil || st.Broken == nil || st.Done || st.Finish != "" {
			t.Errorf("error event %v, body %v, done %v, finish %q (%v); want the event and an aborted body", st.Fault, st.Broken, st.Done, st.Finish, err)
		}
		wakeAll(t, s)
	})
	t.Run("whole", func(t *testing.T) {
		arm(t, s, 0, 30, "stop")
		_, err := c.Chat.Completions.New(context.Background(), tale(80))
		wantError(t, err, http.StatusServiceUnavailable, "no_way_on")
		wakeAll(t, s)
	})
	t.Run("the gateway dies", func(t *testing.T) {
		once := false
		acc, err := follow(context.Background(), c, tale(400), func(chunk openai.ChatCompletionChunk) {
			if !once && len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
				once = true
				_ = syscall.Kill(s.PID(), syscall.SIGKILL)
			}
		})
		if err == nil && (!once || acc.Choices[0].FinishReason == "") {
			t.Errorf("no error and no finish reason after %+v", acc.Choices)
		}
		if !once {
			t.Errorf("the gateway gave no text: %v", err)
		}
	})
}

// startAgain bounds how long a stopped or killed node may take to be back.
const startAgain = 30 * time.Second
