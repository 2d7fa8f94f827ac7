package harness

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Serve starts a gateway without workers. It is stopped when the test ends.
func Serve(t testing.TB, args ...string) *Swarm {
	t.Helper()
	return start(t, t.TempDir(), "serve", args...)
}

// ServeIn is Serve on a data folder.
func ServeIn(t testing.TB, data string, args ...string) *Swarm {
	t.Helper()
	return start(t, data, "serve", args...)
}

// Kill ends the gateway as a power cut would.
func (s *Swarm) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// Token is the join token that the gateway printed.
func (s *Swarm) Token() string {
	s.T.Helper()
	for _, line := range s.said {
		if _, token, ok := strings.Cut(line, "--join "); ok {
			return token
		}
	}
	s.T.Fatalf("no join token in %q", s.said)
	return ""
}

// Do runs a command of an operator on the swarm's data folder and wants it to
// succeed.
func (s *Swarm) Do(command ...string) string {
	s.T.Helper()
	out, errs, code := Run(s.T, "", append(command, "--data", s.Data)...)
	if code != 0 {
		s.T.Fatalf("hecate %s: code %d: %s", strings.Join(command, " "), code, errs)
	}
	return out
}

// Worker is a running `hecate node run`.
type Worker struct {
	t    testing.TB
	cmd  *exec.Cmd
	log  safeBuffer
	done chan struct{}
	err  error // of the process; read after done
}

// Join starts a worker with a data folder of its own. It is stopped when the
// test ends.
func Join(t testing.TB, name string, args ...string) *Worker {
	t.Helper()
	return JoinVia(t, nil, append([]string{"--name", name, "--data", filepath.Join(t.TempDir(), name), "--listen", "127.0.0.1:0"}, args...)...)
}

// JoinVia starts a worker through other programs: each gets the rest of the
// command line as its last arguments. Only the given arguments go to the worker.
func JoinVia(t testing.TB, via []string, args ...string) *Worker {
	t.Helper()
	w := &Worker{t: t, done: make(chan struct{})}
	all := append(append(append([]string{}, via...), Binary(t), "node", "run"), args...)
	w.cmd = exec.Command(all[0], all[1:]...)
	w.cmd.Stderr = &w.log
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		w.err = w.cmd.Wait()
		close(w.done)
	}()
	t.Cleanup(func() {
		_ = w.Stop() // how it ended is for tests that ask
		if t.Failed() {
			t.Logf("log of %s:\n%s", nameIn(args), digest(w.Log()))
		}
	})
	return w
}

// nameIn is the node's name in a worker's arguments.
func nameIn(args []string) string {
	if i := slices.Index(args, "--name"); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return "a worker without a name"
}

// Stop interrupts the worker, waits for its end, and gives how it ended.
func (w *Worker) Stop() error {
	_ = w.cmd.Process.Signal(os.Interrupt)
	return w.Wait()
}

// Wait waits until the worker ends.
func (w *Worker) Wait() error {
	select {
	case <-w.done:
	case <-time.After(15 * time.Second):
		_ = w.cmd.Process.Kill()
		<-w.done
		w.t.Errorf("a node did not end\n%s", w.log.String())
	}
	return w.err
}

// Kill ends the worker as a power cut would.
func (w *Worker) Kill() {
	_ = w.cmd.Process.Kill()
	<-w.done
}

// Gone says that the worker has ended.
func (w *Worker) Gone() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// PID is the worker's process.
func (w *Worker) PID() int { return w.cmd.Process.Pid }

// Log is what the worker has logged.
func (w *Worker) Log() string { return w.log.String() }

// safeBuffer collects a process's output while others read it.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
