//go:build !noengine

package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hecate/test/harness"
)

// A script kills, freezes and wakes the nodes that it names, and no others; what
// it stopped goes on when it ends, also when it failed.
func TestAScriptOfFailures(t *testing.T) {
	t.Parallel()
	s := harness.Up(t, "--allow-chaos")
	desk, mini := s.Node("desk").PID, s.Node("mini").PID
	out, errs, code := harness.Run(t, `
expect healthy
kill laptop
await node laptop restarted within 30s
await healthy within 30s
stop mini
await node mini dead within 15s
expect degraded
continue mini
await healthy within 30s
flap mini every 1s for 1s
expect lost 0
`, "chaos", "run", "-", "--url", s.URL)
	if code != 0 || !strings.Contains(out, "the script held") {
		t.Fatalf("code %d\n%s%s", code, out, errs)
	}
	if s.Node("desk").PID != desk || s.Node("mini").PID != mini {
		t.Error("a node that was not to die has another process")
	}
	s.AwaitHealthy()

	script := filepath.Join(t.TempDir(), "bad.drill")
	if err := os.WriteFile(script, []byte("stop mini\nexpect failed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code = harness.Run(t, "", "chaos", "run", script, "--url", s.URL)
	if code != 1 || !strings.Contains(errs, "bad.drill:2: expect failed: the swarm is ") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	s.AwaitHealthy() // mini goes on

	for line, want := range map[string]string{"kill nobody": "there is no node nobody", "kil mini": "known are kill"} {
		_, errs, code = harness.Run(t, line, "chaos", "run", "-", "--url", s.URL)
		if code == 0 || !strings.Contains(errs, "standard input:1: "+line+": ") || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d, %s", line, code, errs)
		}
	}
}

// An armed failure strikes the next answer; the script sees the rescue.
func TestAScriptArmsAFailure(t *testing.T) {
	t.Parallel()
	s := harness.Up(t, "--allow-chaos")
	want := s.Ask(harness.Story, limit64(nil)).Text()
	run := func(script string) {
		t.Helper()
		if out, errs, code := harness.Run(t, script, "chaos", "run", "-", "--data", s.Data); code != 0 {
			t.Fatalf("code %d\n%s%s", code, out, errs)
		}
	}
	run("arm stage=1 at=20 action=kill")
	a := s.Ask(harness.Story, limit64(nil))
	if a.Text() != want || a.Hecate.Rescues != 1 {
		t.Errorf("the answer was not disturbed, or not mended: %+v", a.Hecate)
	}
	run("await healthy within 30s\nexpect lost 0")
}

// Without leave nothing is done.
func TestAScriptNeedsLeave(t *testing.T) {
	t.Parallel()
	s := harness.Up(t)
	pid := s.Node("laptop").PID
	_, errs, code := harness.Run(t, "kill laptop", "chaos", "run", "-", "--url", s.URL)
	if code != 1 || !strings.Contains(errs, "--allow-chaos") {
		t.Errorf("code %d, %s", code, errs)
	}
	if s.Node("laptop").PID != pid || harness.Gone(pid) {
		t.Error("the node was killed")
	}
}
