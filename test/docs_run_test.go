//go:build !noengine

package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hecate/test/harness"
)

// notRun says of which commands in the documents only the flags are checked,
// and why. The first pattern that a command matches counts; all others are run.
var notRun = []struct{ pattern, because string }{
	{`^hecate (up|serve|node run|chaos proxy|chaos upstream --listen)\b`, "runs until it is stopped; every test of this package starts some"},
	{`:8092/`, "asks the upstream that fails; chaos_test.go of internal/cli does"},
	{`http://127\.0\.0\.1:8093`, "goes through the proxy that stands in the document; links_test.go does"},
	{`attic\.lan|/srv/|/var/lib/|hecate-join-|10\.0\.0\.|registry\.example|~/`, "names machines and files of the reader"},
	{`^hecate engine rm`, "of an engine that is not added"},
	{`^hecate (token|key) revoke`, "of an id of the reader"},
	{`^hecate model (add|rm|shard)`, "wants a real model; weights_test.go adds, removes and cuts them"},
	{`floor2-07`, "is of the swarm in the document"},
	{`^hecate node (drain|remove)`, "takes a node out of a swarm that needs all three; leaving_test.go does"},
	{`chaos run examples/`, "rehearses for up to a minute, and waits for a reader who asks; chaos_test.go plays the scripts"},
	{`^hecate bench`, "takes minutes to hours"},
	{`^hecate sim`, "paper_docs_test.go of internal/cli runs these and compares what they print; the rest takes minutes"},
}

// why is the reason for not running a command; empty for those that are run.
func why(text string) string {
	for _, n := range notRun {
		if regexp.MustCompile(n.pattern).MatchString(text) {
			return n.because
		}
	}
	return ""
}

// commandWait bounds one command: a document must not hang the tests.
const commandWait = 2 * time.Minute

// TestTheDocsCommandsRun runs what a reader would type against one swarm, in
// the order of the documents. A command that shows an error must give one, all
// others none.
func TestTheDocsCommandsRun(t *testing.T) {
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the documents' commands need %s", tool)
		}
	}
	s := harness.Up(t, "--allow-chaos")
	ran := 0
	for _, c := range docCommands(t) {
		c.text = strings.TrimPrefix(strings.ReplaceAll(c.text, "| bin/hecate ", "| hecate "), "bin/")
		if why(c.text) != "" {
			continue
		}
		ran++
		runDocCommand(t, s, c)
		if t.Failed() {
			return // what follows may rest on it
		}
	}
	t.Logf("%d commands were run", ran)
	if ran < 30 {
		t.Errorf("only %d commands were run", ran)
	}
}

// runDocCommand runs one command as it stands there, but for addresses and
// folders, which are those of the test's swarm.
func runDocCommand(t *testing.T, s *harness.Swarm, c docCommand) {
	t.Helper()
	s.AwaitHealthy()
	text := regexp.MustCompile(`http://127\.0\.0\.1:80\d\d`).ReplaceAllLiteralString(c.text, s.URL)
	text = strings.ReplaceAll(text, "/tmp/hecate-rehearsal", s.Data)
	text = strings.ReplaceAll(text, " llama.gguf", " internal/demomodel/demo-q8_0.gguf")
	ctx, cancel := context.WithTimeout(context.Background(), commandWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", "set -o pipefail; "+text)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "HECATE_DATA="+s.Data, "PATH="+filepath.Dir(harness.Binary(t))+":"+os.Getenv("PATH"))
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	code := cmd.ProcessState.ExitCode()
	refused := err != nil || strings.Contains(string(out), `{"error":`)
	wanted := strings.Contains(c.shown, `{"error":`) || strings.Contains(c.text, "kil laptop")
	if strings.HasPrefix(c.text, "hecate doctor") && code == 1 {
		refused = false // a check did not hold on this machine, and it says so
	}
	if refused != wanted {
		t.Errorf("%s\nended with code %d (%v), an error: %v, wanted: %v\n%s", c, code, err, refused, wanted, out)
	}
}

// TestEachReasonForNotRunningACommandIsNeeded: the table holds nothing stale.
func TestEachReasonForNotRunningACommandIsNeeded(t *testing.T) {
	met := map[string]bool{}
	for _, c := range docCommands(t) {
		met[why(strings.TrimPrefix(c.text, "bin/"))] = true
	}
	for _, n := range notRun {
		if !met[n.because] {
			t.Errorf("no command in the documents matches %s", n.pattern)
		}
	}
}
