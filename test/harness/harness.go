// Package harness runs real swarms of real processes for tests, and talks to
// them as a client would.
package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hecate/internal/report"
)

var build struct {
	sync.Once
	path string
	err  error
	kept bool // somebody else's
}

// BinaryVariable names a binary that was built before, for a test that runs
// itself again in another network.
const BinaryVariable = "HECATE_TEST_BINARY"

// Binary builds hecate once per test run and gives its path.
func Binary(t testing.TB) string {
	t.Helper()
	build.Do(func() {
		if build.path = os.Getenv(BinaryVariable); build.path != "" {
			build.kept = true
			return
		}
		dir, err := os.MkdirTemp("", "hecate-test")
		if err != nil {
			build.err = err
			return
		}
		build.path = filepath.Join(dir, "hecate")
		build.err = Build(build.path)
	})
	if build.err != nil {
		t.Fatal(build.err)
	}
	return build.path
}

// Build builds hecate to a path, with more arguments for the compiler.
func Build(path string, args ...string) error {
	all := append([]string{"build", "-o", path}, args...)
	out, err := exec.Command("go", append(all, "hecate/cmd/hecate")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build hecate: %w\n%s", err, out)
	}
	return nil
}

// Remove deletes the binary; for TestMain.
func Remove() {
	if build.path != "" && !build.kept {
		_ = os.RemoveAll(filepath.Dir(build.path))
	}
}

// Swarm is a running `hecate up` or `hecate serve`.
type Swarm struct {
	URL  string
	Data string
	T    testing.TB
	said []string // lines that it printed before it was ready
	cmd  *exec.Cmd
	errs *bytes.Buffer
	mu   sync.Mutex
	done chan struct{}
	err  error
}

// startWait bounds how long a swarm may take to be ready.
const startWait = 60 * time.Second

// Up starts a swarm with more arguments and waits until it is ready. It is
// stopped when the test ends.
func Up(t testing.TB, args ...string) *Swarm {
	t.Helper()
	return UpIn(t, t.TempDir(), args...)
}

// UpIn is Up on a data folder.
func UpIn(t testing.TB, data string, args ...string) *Swarm {
	t.Helper()
	return start(t, data, "up", args...)
}

// UpFrom is Up with another binary and more in its environment.
func UpFrom(t testing.TB, binary string, environment []string, args ...string) *Swarm {
	t.Helper()
	return startFrom(t, binary, environment, t.TempDir(), "up", args...)
}

// start runs a command that keeps a swarm, and waits until it says ready.
func start(t testing.TB, data, command string, args ...string) *Swarm {
	t.Helper()
	return startFrom(t, Binary(t), nil, data, command, args...)
}

func startFrom(t testing.TB, binary string, environment []string, data, command string, args ...string) *Swarm {
	t.Helper()
	s := &Swarm{Data: data, T: t, errs: &bytes.Buffer{}, done: make(chan struct{})}
	all := append([]string{command, "--listen", "127.0.0.1:0", "--data", data, "--verbose"}, args...)
	s.cmd = exec.Command(binary, all...)
	s.cmd.Env = append(os.Environ(), environment...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Stderr = (*lockedBuffer)(s)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	ready := make(chan string, 1)
	go func() {
		var before []string
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if url, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
				s.said = before
				ready <- url
			}
			before = append(before, lines.Text())
		}
		s.err = s.cmd.Wait()
		close(s.done)
	}()
	select {
	case s.URL = <-ready:
	case <-s.done:
		t.Fatalf("hecate %s ended: %v\n%s", command, s.err, s.Log())
	case <-time.After(startWait):
		t.Fatalf("hecate %s is not ready after %s\n%s", command, startWait, s.Log())
	}
	return s
}

// lockedBuffer collects the swarm's log.
type lockedBuffer Swarm

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.errs.Write(p)
}

// Log is what the swarm has logged.
func (s *Swarm) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errs.String()
}

// PID is the gateway's process.
func (s *Swarm) PID() int { return s.cmd.Process.Pid }

// Stop interrupts the swarm and waits for its end.
func (s *Swarm) Stop() {
	_ = s.cmd.Process.Signal(os.Interrupt)
	select {
	case <-s.done:
	case <-time.After(15 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.done
		s.T.Errorf("the swarm did not stop\n%s", digest(s.Log()))
	}
	if s.T.Failed() {
		s.T.Logf("log of the swarm:\n%s", digest(s.Log()))
	}
}

// digest is what a failed test prints of a log: its last lines without those of
// requests that nothing happened to, which would bury what failed.
func digest(log string) string {
	const most = 120
	var kept []string
	plain := 0
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"outcome":"finished"`) && !strings.Contains(line, "rescue") {
			plain++
			continue
		}
		kept = append(kept, line)
	}
	cut := max(0, len(kept)-most)
	return fmt.Sprintf("(left out: %d requests that finished, %d older lines)\n%s", plain, cut, strings.Join(kept[cut:], ""))
}

// Status asks for the swarm's state.
func (s *Swarm) Status() report.Status {
	s.T.Helper()
	var st report.Status
	if code := s.Get("/v1/swarm", &st); code != http.StatusOK {
		s.T.Fatalf("GET /v1/swarm: %d", code)
	}
	return st
}

// Node finds a node of the status.
func (s *Swarm) Node(id string) report.Node {
	s.T.Helper()
	for _, n := range s.Status().Nodes {
		if n.ID == id {
			return n
		}
	}
	s.T.Fatalf("there is no node %s", id)
	return report.Node{}
}

// Get decodes one document and gives the status code.
func (s *Swarm) Get(path string, into any) int {
	s.T.Helper()
	resp, err := http.Get(s.URL + path)
	if err != nil {
		s.T.Fatal(err)
	}
	defer resp.Body.Close()
	if into != nil {
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			s.T.Fatalf("GET %s: %v", path, err)
		}
	}
	return resp.StatusCode
}

// Post sends a body, a string as it is and all else as JSON, and gives the
// response's status, headers and body.
func (s *Swarm) Post(ctx context.Context, path string, body any) (int, http.Header, []byte) {
	s.T.Helper()
	code, header, out, err := s.TryPost(ctx, path, body)
	if err != nil {
		s.T.Fatal(err)
	}
	return code, header, out
}

// TryPost is Post for requests that may break.
func (s *Swarm) TryPost(ctx context.Context, path string, body any) (int, http.Header, []byte, error) {
	var payload io.Reader
	if text, ok := body.(string); ok {
		payload = strings.NewReader(text)
	} else {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, nil, nil, err
		}
		payload = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, payload)
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, b, err
}

// Await polls until a condition holds.
func (s *Swarm) Await(what string, within time.Duration, holds func() bool) {
	s.T.Helper()
	if !s.Within(within, holds) {
		s.T.Fatalf("after %s still not: %s", within, what)
	}
}

// Within polls until a condition holds; false when it did not in time.
func (s *Swarm) Within(limit time.Duration, holds func() bool) bool {
	deadline := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(deadline) {
			return false
		}
		runtime.Gosched()
		<-time.After(20 * time.Millisecond)
	}
	return true
}

// AwaitHealthy waits until every copy lives.
func (s *Swarm) AwaitHealthy() {
	s.T.Helper()
	s.Await("healthy", 30*time.Second, func() bool { return s.Status().State == "healthy" })
}

// Signal sends a signal to a node's process and gives its pid.
func (s *Swarm) Signal(node string, sig syscall.Signal) int {
	s.T.Helper()
	pid := s.Node(node).PID
	if pid == 0 {
		s.T.Fatalf("node %s has no process here", node)
	}
	if err := syscall.Kill(pid, sig); err != nil {
		s.T.Fatalf("signal %s: %v", node, err)
	}
	return pid
}

// Gone says that a process does not exist any more.
func Gone(pid int) bool { return syscall.Kill(pid, 0) != nil }

// Run runs a hecate command to its end.
func Run(t testing.TB, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(Binary(t), args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// UpJSON runs `hecate up --json` until it is ready, stops it, and gives the
// lines that it printed.
func UpJSON(t testing.TB, args ...string) (lines []string) {
	t.Helper()
	cmd := exec.Command(Binary(t), append([]string{"up", "--json", "--listen", "127.0.0.1:0", "--data", t.TempDir()}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(out)
	for scan.Scan() {
		lines = append(lines, scan.Text())
		if strings.Contains(scan.Text(), `"ready"`) {
			_ = cmd.Process.Signal(os.Interrupt)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("hecate up --json: %v", err)
	}
	return lines
}
