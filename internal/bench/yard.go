package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/admin"
	"hecate/swarm"
)

// yard is a gateway (`hecate serve`) and the workers that join it, each a
// process, as on several machines.
type yard struct {
	*local
	admin   *admin.Client
	workers map[string]*worker
}

// openYard starts a gateway without workers.
func openYard(ctx context.Context) (*yard, error) {
	data, err := os.MkdirTemp("", "hecate-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a data folder: %w", err)
	}
	y := &yard{local: &local{data: data, ended: make(chan struct{})}, workers: map[string]*worker{}}
	gateway := filepath.Join(data, "gateway")
	ready, err := y.start([]string{"serve", "--json", "--verbose", "--listen", "127.0.0.1:0", "--data", gateway, "--token-uses", "0"})
	if err != nil {
		_ = os.RemoveAll(data)
		return nil, fmt.Errorf("start hecate serve: %w", err)
	}
	select {
	case e := <-ready:
		y.url, y.model = e.URL, e.Model
	case <-y.ended:
		err = fmt.Errorf("it ended: %w\n%s", orEnded(y.err), y.errs.String())
	case <-time.After(startTime):
		err = errors.New("it is not ready")
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		y.admin, err = admin.Open(gateway)
	}
	if err != nil {
		y.close()
		return nil, fmt.Errorf("hecate serve: %w", err)
	}
	return y, nil
}

// close ends workers and gateway.
func (y *yard) close() {
	for _, w := range y.workers {
		w.end()
	}
	y.stop()
}

// worker is one `hecate node run`.
type worker struct {
	name  string
	began time.Time
	proc  *os.Process
	leash io.Closer
	lines journal
	done  chan struct{}
}

// join starts a worker under a name; one that was there before comes back.
func (y *yard) join(ctx context.Context, name string) (*worker, error) {
	args := []string{"node", "run", "--leash", "--name", name, "--data", filepath.Join(y.data, name), "--listen", "127.0.0.1:0", "--memory", "64MiB"}
	if y.workers[name] == nil {
		token, err := y.admin.CreateToken(ctx, admin.TokenRequest{Uses: 1})
		if err != nil {
			return nil, fmt.Errorf("make a join token: %w", err)
		}
		args = append(args, "--join", token.Token)
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{name: name, done: make(chan struct{})}
	cmd := exec.Command(exe, args...)
	cmd.Stderr = &w.lines
	if w.leash, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	w.began = time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the worker %s: %w", name, err)
	}
	w.proc = cmd.Process
	go func() {
		_ = cmd.Wait() // it is killed, as a rule
		close(w.done)
	}()
	y.workers[name] = w
	return w, nil
}

// end kills the worker, also one that stands still, and waits.
func (w *worker) end() {
	_ = w.proc.Kill()
	<-w.done
	_ = w.leash.Close()
}

// until polls the gateway's view of a node until a condition holds.
func (y *yard) until(ctx context.Context, node string, holds func(admin.NodeInfo) bool) (admin.NodeInfo, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, wholeTime, errNotWhole)
	defer cancel()
	for {
		nodes, err := y.admin.Nodes(ctx)
		if err != nil {
			return admin.NodeInfo{}, err
		}
		for _, n := range nodes {
			if n.Record.ID == node && holds(n) {
				return n, nil
			}
		}
		select {
		case <-ctx.Done():
			return admin.NodeInfo{}, fmt.Errorf("node %s: %w", node, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// serving says that a node lives and holds all that the plan gives it.
func (y *yard) serving(ctx context.Context, node string) error {
	_, err := y.until(ctx, node, func(n admin.NodeInfo) bool {
		if n.Status != "alive" || n.Health == nil || len(n.Health.Loading) > 0 || len(n.Health.Held) == 0 {
			return false
		}
		plan, err := y.admin.Plan(ctx)
		return err == nil && holdsWanted(n.Health, plan.Wanted(node))
	})
	return err
}

func holdsWanted(h *control.Health, want []swarm.Fragment) bool {
	for _, f := range want {
		covered := false
		for _, held := range h.Held {
			covered = covered || held.Model == f.Model && held.Layers.Covers(f.Layers)
		}
		if !covered {
			return false
		}
	}
	return len(want) > 0
}

// journal reads a process's log: what it said, and when.
type journal struct {
	mu      sync.Mutex
	rest    []byte
	entries []entry
}

type entry struct {
	Time time.Time `json:"time"`
	Msg  string    `json:"msg"`
	Took string    `json:"took"`
}

// Write implements io.Writer.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rest = append(j.rest, p...)
	lines := bufio.NewScanner(strings.NewReader(string(j.rest)))
	last := strings.LastIndexByte(string(j.rest), '\n') + 1
	for read := 0; lines.Scan() && read < last; read += len(lines.Bytes()) + 1 {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Msg != "" {
			j.entries = append(j.entries, e)
		}
	}
	j.rest = append([]byte{}, j.rest[last:]...)
	return len(p), nil
}

// said lists entries with a message, in order.
func (j *journal) said(msg string) (out []entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		if e.Msg == msg {
			out = append(out, e)
		}
	}
	return out
}
