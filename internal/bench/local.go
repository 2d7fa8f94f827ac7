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
	"runtime"
	"strings"
	"sync"
	"time"

	"hecate/internal/bench/tail"
)

// Bounds of waiting for a swarm; reaching one is a failed measurement.
const (
	startTime = 3 * time.Minute // until it is ready: a model is hashed and loaded
	stopTime  = 15 * time.Second
	wholeTime = 90 * time.Second // until a node that died serves again
)

// local is a running `hecate up` of this very program.
type local struct {
	url   string
	model string // its id
	proc  *os.Process
	data  string
	errs  tail.Writer
	ended chan struct{}
	err   error // how it ended; read after ended is closed

	stopOnce sync.Once
}

// startLocal starts a swarm and waits until it is ready. stop ends it; so does
// the end of this process, however it comes.
func startLocal(ctx context.Context, s *subject, args ...string) (*local, error) {
	data, err := os.MkdirTemp("", "hecate-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a data folder: %w", err)
	}
	all := append([]string{"up", "--json", "--verbose", "--listen", "127.0.0.1:0", "--data", data}, args...)
	if s.path != "" {
		all = append(all, "--model", s.path)
	}
	l := &local{data: data, ended: make(chan struct{})}
	ready, err := l.start(all)
	if err != nil {
		_ = os.RemoveAll(data)
		return nil, fmt.Errorf("start hecate %s: %w", strings.Join(all, " "), err)
	}
	if err := l.await(ctx, ready); err != nil {
		l.stop()
		return nil, fmt.Errorf("hecate %s: %w", strings.Join(all, " "), err)
	}
	return l, nil
}

type readyEvent struct{ Event, URL, Model string }

// start runs the program and gives a channel with its word that it is ready.
func (l *local) start(args []string) (<-chan readyEvent, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, args...)
	cmd.SysProcAttr = endsWithUs()
	cmd.Stderr = &l.errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started, ready := make(chan error), make(chan readyEvent, 1)
	go func() {
		// The kernel ends a child when the thread that made it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		readEvents(out, ready)
		l.err = cmd.Wait()
		close(l.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	l.proc = cmd.Process
	return ready, nil
}

// readEvents looks for the line that says ready, and drains the rest.
func readEvents(out io.Reader, ready chan<- readyEvent) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e readyEvent
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Event == "ready" {
			select {
			case ready <- e:
			default:
			}
		}
	}
	_, _ = io.Copy(io.Discard, out) // a line too long ended the scanner
}

func (l *local) await(ctx context.Context, ready <-chan readyEvent) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	select {
	case e := <-ready:
		l.url, l.model = e.URL, e.Model
		return l.whole(ctx, "", 0)
	case <-l.ended:
		return fmt.Errorf("it ended: %w\n%s", orEnded(l.err), l.errs.String())
	case <-ctx.Done():
		return fmt.Errorf("it is not ready: %w\n%s", context.Cause(ctx), l.errs.String())
	}
}

func orEnded(err error) error {
	if err == nil {
		return errors.New("by itself")
	}
	return err
}

// stop interrupts the swarm, waits for its end, and removes its folder.
func (l *local) stop() {
	l.stopOnce.Do(func() {
		_ = l.proc.Signal(os.Interrupt)
		select {
		case <-l.ended:
		case <-time.After(stopTime):
			_ = l.proc.Kill()
			<-l.ended
		}
		_ = os.RemoveAll(l.data)
	})
}
