//go:build !noengine

package test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"hecate/test/harness"
)

// screen is a terminal in tmux, on a server of its own.
type screen struct {
	t      *testing.T
	socket string
}

func (s screen) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-L", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// await looks at the screen until it shows a text.
func (s screen) await(text string) string {
	s.t.Helper()
	var seen string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if seen = s.tmux("capture-pane", "-p", "-t", "top"); strings.Contains(seen, text) {
			return seen
		}
	}
	s.t.Fatalf("the screen does not show %q:\n%s", text, seen)
	return ""
}

// TestTopInATerminal watches a swarm in a real terminal of two sizes, while an
// answer survives a kill and a node is paused.
func TestTopInATerminal(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux")
	}
	s := harness.Up(t, "--allow-chaos")
	for _, size := range []struct{ width, height int }{{80, 24}, {200, 60}} {
		sc := screen{t, fmt.Sprintf("hecate-top-%d-%d", s.PID(), size.width)}
		sc.tmux("new-session", "-d", "-s", "top", "-x", fmt.Sprint(size.width), "-y", fmt.Sprint(size.height),
			harness.Binary(t)+" top --data "+s.Data)
		t.Cleanup(func() { _ = exec.Command("tmux", "-L", sc.socket, "kill-server").Run() })
		sc.await("3 of 3 nodes")
		s.Post(context.Background(), "/v1/swarm/chaos/arm", map[string]any{"stage": 1, "at_token": 20, "action": "kill"})
		if a := s.Ask(harness.Story, limit64(nil)); a.Hecate.Rescues < 1 {
			t.Error("no rescue")
		}
		sc.await("an answer survived the failure")
		s.AwaitHealthy()
		sc.tmux("send-keys", "-t", "top", "p")
		sc.await("pause is done")
		whole := sc.await("paused")
		if lines := strings.Split(strings.TrimSuffix(whole, "\n"), "\n"); len(lines) > size.height {
			t.Errorf("%d lines on %d", len(lines), size.height)
		}
		sc.tmux("send-keys", "-t", "top", "r")
		sc.await("resume is done")
		sc.tmux("send-keys", "-t", "top", "q")
		s.Await("the view is gone", 10*time.Second, func() bool {
			return exec.Command("tmux", "-L", sc.socket, "has-session").Run() != nil
		})
		s.AwaitHealthy()
	}
}
