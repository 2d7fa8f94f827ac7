//go:build !noengine

package test

import (
	"context"
	"testing"
	"time"

	"hecate/internal/trace/tracetest"
	"hecate/test/harness"
)

// TestTraces: a collector gets the spans of an answer, also of its rescue, and
// nothing that was said.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := tracetest.New(t)
	s := harness.Up(t, "--allow-chaos", "--otlp", c.URL)
	code, _, body := s.Post(context.Background(), "/v1/swarm/chaos/arm", map[string]any{"stage": 1, "at_token": 20, "action": "kill"})
	if code != 200 {
		t.Fatalf("arm: %d %s", code, body)
	}
	a := s.Ask(harness.Story, limit64(nil))
	if a.Hecate.Rescues < 1 {
		t.Fatal("no rescue")
	}
	s.Await("the spans of a rescued answer", 20*time.Second, func() bool {
		return len(c.Spans("POST /v1/chat/completions")) == 1 && len(c.Spans("rescue from ")) >= 1 && len(c.Spans("answer")) >= 1
	})
	request := c.Spans("POST /v1/chat/completions")[0]
	if got := tracetest.Attribute(request, "hecate.request").GetStringValue(); got != a.Header.Get("X-Request-Id") {
		t.Errorf("the span is of request %q, not %q", got, a.Header.Get("X-Request-Id"))
	}
	for _, prefix := range []string{"queue", "open", "prefill ", "decode ", "answer", "rescue from "} {
		spans := c.Spans(prefix)
		if len(spans) == 0 {
			t.Errorf("no span %q", prefix)
			continue
		}
		if string(spans[0].TraceId) != string(request.TraceId) {
			t.Errorf("%s is in another trace", spans[0].Name)
		}
	}
	if c.Mentions("lantern") {
		t.Error("what was asked is in the spans")
	}
}

// TestACollectorThatIsGone costs nothing.
func TestACollectorThatIsGone(t *testing.T) {
	t.Parallel()
	s := harness.Up(t, "--otlp", "http://127.0.0.1:1")
	if s.Ask(harness.Story, limit64(nil)).Text() == "" {
		t.Error("no answer")
	}
}
