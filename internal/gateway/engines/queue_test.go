package engines

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hecate/internal/control"
)

// Keys that come once each leave nothing behind, although the model is never idle.
func TestKeysAreForgotten(t *testing.T) {
	h := newHouse(t, Config{})
	h.engine(control.EngineRecord{ID: "a", URL: server(t, "m", func(http.ResponseWriter, *http.Request) {})})
	busy, err := h.room.choose(t.Context(), &Call{Model: "m", Key: "busy"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 * mostServed {
		g, err := h.room.choose(t.Context(), &Call{Model: "m", Key: fmt.Sprint("key", i)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.room.release(g, nil)
	}
	h.room.mu.Lock()
	q := h.room.mu.queues["m"]
	if n := len(q.served); n > 3*mostServed || q.served["busy"] == 0 {
		t.Errorf("%d keys are remembered, the one that is at work: %v", n, q.served["busy"] != 0)
	}
	h.room.mu.Unlock()
	h.room.release(busy, nil)
}

// What is announced and does not come takes no memory.
func TestAnAnnouncedBodyTakesNoMemory(t *testing.T) {
	b := &buffer{}
	if err := b.fill(strings.NewReader("short"), MaxBody); err != nil || string(b.data) != "short" {
		t.Fatal(err, b.data)
	}
	if cap(b.data) > keepUpTo {
		t.Errorf("%d bytes are held for 5", cap(b.data))
	}
	long := strings.Repeat("x", 3*keepUpTo)
	if b = (&buffer{}); b.fill(strings.NewReader(long), int64(len(long))) != nil || string(b.data) != long {
		t.Error("a long body came as another one")
	}
}
