//go:build !noengine

package test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hecate/test/harness"
)

// TestAKernelAbortKillsOnlyTheNode: an assertion that fails in the kernels' C
// code ends the node's process in the middle of an answer. The answer goes on,
// the gateway and the other nodes live, and the node comes back.
func TestAKernelAbortKillsOnlyTheNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary, trigger := filepath.Join(dir, "hecate"), filepath.Join(dir, "abort")
	if err := harness.Build(binary, "-tags", "kernelabort"); err != nil {
		t.Fatal(err)
	}
	s := harness.UpFrom(t, binary, []string{"HECATE_KERNEL_ABORT=" + trigger})
	want := s.Ask(harness.Story, limit64(nil)).Text()
	before := processesOf(s.Status())
	pieces := 0
	st, err := s.AskStream(context.Background(), harness.Story, limit64(nil), func(string) {
		if pieces++; pieces == 10 {
			if err := os.WriteFile(trigger, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || !st.Done || st.Broken != nil {
		t.Fatalf("%v, done %v, %v", err, st.Done, st.Broken)
	}
	if st.Text != want {
		t.Errorf("got %q, want %q", st.Text, want)
	}
	if _, err := os.Stat(trigger); err == nil {
		t.Fatal("no node took the trigger: the answer was over too soon")
	}
	s.Await("one process is gone", 5*time.Second, func() bool {
		gone := 0
		for _, pid := range before {
			if harness.Gone(pid) {
				gone++
			}
		}
		return gone == 1
	})
	s.AwaitHealthy()
	if again := s.Ask(harness.Story, limit64(nil)).Text(); again != want {
		t.Errorf("afterwards %q, want %q", again, want)
	}
}
