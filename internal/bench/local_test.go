package bench

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestASwarmIsStartedAndEnded(t *testing.T) {
	t.Setenv(fakeVariable, "works")
	l, err := startLocal(t.Context(), &subject{name: "m"}, "--nodes", "1")
	if err != nil {
		t.Fatal(err)
	}
	defer l.stop()
	if l.model != "fake" {
		t.Errorf("model %q, want the one of the ready line", l.model)
	}
	st, err := l.status(t.Context())
	if err != nil || len(st.Nodes) != 1 || st.Nodes[0].PID != l.proc.Pid {
		t.Fatalf("%+v, %v", st, err)
	}
	l.stop()
	l.stop() // once is enough, twice is harmless
	select {
	case <-l.ended:
	default:
		t.Error("the process has not ended")
	}
	if _, err := os.Stat(l.data); !os.IsNotExist(err) {
		t.Errorf("the data folder %s is still there", l.data)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestASwarmThatFailsSaysWhy(t *testing.T) {
	t.Setenv(fakeVariable, "fails")
	_, err := startLocal(t.Context(), &subject{name: "m"})
	if err == nil || !strings.Contains(err.Error(), "the port is in use") {
		t.Errorf("%v, want what the program said", err)
	}
}

func TestStartingCanBeInterrupted(t *testing.T) {
	t.Setenv(fakeVariable, "hangs")
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("Ctrl-C")
	cancel(reason)
	if _, err := startLocal(ctx, &subject{name: "m"}); !errors.Is(err, reason) {
		t.Errorf("%v, want %v", err, reason)
	}
}
