//go:build !noengine

package test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hecate/internal/demomodel"
	"hecate/internal/report"
	"hecate/test/harness"
)

// Starting badly is refused in one clear line, and nothing is left running.
func TestUpRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	demo := demomodel.GGUF()
	other := []byte(strings.Replace(string(demo[:4096]), "llama", "zebra", -1) + string(demo[4096:]))
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"no such file", []string{"--model", filepath.Join(dir, "none.gguf")}, 2, []string{"none.gguf", "no such file"}},
		{"not GGUF", []string{"--model", write("text.gguf", []byte("just a text file, long enough to be read as a header"))}, 2, []string{"text.gguf", "magic"}},
		{"empty", []string{"--model", write("empty.gguf", nil)}, 2, []string{"empty.gguf"}},
		{"truncated", []string{"--model", write("cut.gguf", demo[:len(demo)/2])}, 2, []string{"cut.gguf"}},
		{"cut in the header", []string{"--model", write("head.gguf", demo[:100])}, 2, []string{"head.gguf"}},
		{"unknown architecture", []string{"--model", write("zebra.gguf", other)}, 2, []string{"zebra"}},
		{"too large for the budgets", []string{"--node-memory", "2MiB"}, 1, []string{"lacks", "bytes", "--node-memory"}},
		{"port in use", []string{"--listen", busy.Addr().String()}, 1, []string{busy.Addr().String(), "address already in use"}},
		{"no nodes", []string{"--nodes", "0"}, 2, []string{"--nodes"}},
		{"more copies than nodes", []string{"--nodes", "2", "--copies", "3"}, 2, []string{"--copies"}},
		{"bad size", []string{"--node-memory", "much"}, 2, []string{"much"}},
		{"unknown flag", []string{"--fast"}, 2, []string{"--fast"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"up", "--listen", "127.0.0.1:0", "--data", t.TempDir()}, c.args...)
			out, errs, code := harness.Run(t, "", args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d; %s", code, c.code, errs)
			}
			for _, want := range c.says {
				if !strings.Contains(errs, want) {
					t.Errorf("says %q, want %q in it", errs, want)
				}
			}
			if strings.Contains(out, "ready") || strings.Count(strings.TrimSpace(errs), "\n") > 2 {
				t.Errorf("said %q and %q, want one clear line", out, errs)
			}
		})
	}
}

func TestTheDataFolderIsForOne(t *testing.T) {
	t.Parallel()
	s := harness.Up(t, "--nodes", "1", "--copies", "1")
	_, errs, code := harness.Run(t, "", "up", "--listen", "127.0.0.1:0", "--data", s.Data)
	if code != 1 || !strings.Contains(errs, "--data") {
		t.Errorf("a second up on the same folder: code %d, %s", code, errs)
	}
	if s.Status().State != "healthy" {
		t.Error("the first one was hurt")
	}
}

// Whatever ends `hecate up`, nothing stays behind.
func TestNothingIsLeftRunning(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM, "SIGKILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			s := harness.Up(t)
			var pids []int
			for _, n := range s.Status().Nodes {
				pids = append(pids, n.PID)
			}
			stopped := pids[0]
			_ = syscall.Kill(stopped, syscall.SIGSTOP) // even one that cannot listen
			if err := syscall.Kill(s.PID(), sig); err != nil {
				t.Fatal(err)
			}
			s.Await("all processes are gone", 15*time.Second, func() bool {
				for _, pid := range pids {
					if !harness.Gone(pid) {
						return false
					}
				}
				return true
			})
		})
	}
}

// The same folder again: the nodes keep their identity, the swarm its plan.
func TestARestartKeepsTheSwarm(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	first := harness.UpIn(t, data)
	before := first.Status()
	first.Stop()
	second := harness.UpIn(t, data)
	after := second.Status()
	if len(after.Nodes) != len(before.Nodes) || after.Generation < before.Generation {
		t.Errorf("%d nodes at generation %d, before %d at %d", len(after.Nodes), after.Generation, len(before.Nodes), before.Generation)
	}
	if got := second.Ask("Hello!", nil).Text(); got == "" {
		t.Error("no answer after the restart")
	}
}

func TestCommandsFindTheSwarm(t *testing.T) {
	t.Parallel()
	s := harness.Up(t)
	out, errs, code := harness.Run(t, "", "status", "--json", "--data", s.Data)
	var st report.Status
	if err := json.Unmarshal([]byte(out), &st); err != nil || code != 0 || len(st.Nodes) != 3 {
		t.Errorf("status --json --data: %d %v %s%s", code, err, out, errs)
	}
	out, _, code = harness.Run(t, "", "status", "--url", s.URL)
	if code != 0 || !strings.Contains(out, "swarm healthy") || !strings.Contains(out, "copy 1") {
		t.Errorf("status --url: %d %s", code, out)
	}
	out, _, code = harness.Run(t, "", "model", "ls", "--url", s.URL)
	if code != 0 || !strings.Contains(out, harness.Model) || !strings.Contains(out, "demo") {
		t.Errorf("model ls: %d %s", code, out)
	}
	out, errs, code = harness.Run(t, "", "chat", "--url", s.URL, "--temperature", "0", "What is the capital of France?")
	if code != 0 || !strings.Contains(out, "Paris") {
		t.Errorf("chat: %d %q %s", code, out, errs)
	}
	out, _, code = harness.Run(t, "What is the capital of France?\n\nAnd what is 27 + 45?\n", "chat", "--url", s.URL, "--temperature", "0")
	if code != 0 || !strings.Contains(out, "Paris") || !strings.Contains(out, "72") {
		t.Errorf("a conversation: %d %q", code, out)
	}
	_, errs, code = harness.Run(t, "", "status", "--data", t.TempDir())
	if code != 1 || !strings.Contains(errs, "hecate up") {
		t.Errorf("status without a swarm: %d %s", code, errs)
	}
	_, errs, code = harness.Run(t, "", "chat", "--url", "http://127.0.0.1:1", "hi")
	if code != 1 || !strings.Contains(errs, "does not answer") {
		t.Errorf("chat with nobody: %d %s", code, errs)
	}
	if out, _, code := harness.Run(t, "", "plan", "--url", s.URL, "--what-if", "mini"); code != 0 || !strings.Contains(out, "if mini dies") {
		t.Errorf("plan --what-if: %d %s", code, out)
	}
	if out, _, code := harness.Run(t, "", "route", "explain", "--url", s.URL); code != 0 || !strings.Contains(out, "decode") && !strings.Contains(out, "unmeasured") {
		t.Errorf("route explain: %d %s", code, out)
	}
}

func TestUpPrintsEventsAsJSON(t *testing.T) {
	t.Parallel()
	s := harness.UpJSON(t, "--nodes", "1", "--copies", "1")
	kinds := map[string]bool{}
	for _, line := range s {
		var e struct {
			Event string `json:"event"`
			URL   string `json:"url"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Errorf("line %q: %v", line, err)
		}
		kinds[e.Event] = true
	}
	for _, want := range []string{"starting", "ready", "stopped"} {
		if !kinds[want] {
			t.Errorf("no event %q in %v", want, s)
		}
	}
}
