package cli

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// stopTime is how long a child may take to end by itself.
const stopTime = 5 * time.Second

// steadyTime is how long a child must have lived for its next death to be the
// first one again.
const steadyTime = 10 * time.Second

// child is one worker process that `hecate up` keeps alive.
type child struct {
	name string
	args []string
	env  []string // besides ours: secrets do not belong in the process list
	log  *slog.Logger
	out  io.Writer // its log lines
	died func(pid int, err error)
}

// keep starts the process and starts it again whenever it ends, a little later
// each time, until ctx ends; then it stops it and waits.
func (c *child) keep(ctx context.Context) {
	// The kernel ends a child when the thread that made it ends: that must be
	// ours, for as long as we keep children.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 100*time.Millisecond, 5*time.Second
	for ctx.Err() == nil {
		began := time.Now()
		pid, err := c.run(ctx)
		if ctx.Err() != nil {
			return
		}
		c.died(pid, err)
		if time.Since(began) > steadyTime {
			pause.Reset()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause.NextBackOff()):
		}
	}
}

// run is one life of the process.
func (c *child) run(ctx context.Context) (pid int, err error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(exe, c.args...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.SysProcAttr = dieWithParent()
	leash, err := cmd.StdinPipe() // it ends when this closes: also when we are killed
	if err != nil {
		return 0, err
	}
	lines, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	var reading sync.WaitGroup
	reading.Go(func() { c.copyLines(lines) })
	gone := make(chan struct{})
	go func() {
		select {
		case <-gone:
			return
		case <-ctx.Done():
		}
		_ = leash.Close()
		select {
		case <-gone:
		case <-time.After(stopTime):
			_ = cmd.Process.Kill()
		}
	}()
	reading.Wait()
	err = cmd.Wait()
	close(gone)
	return cmd.Process.Pid, err
}

// copyLines writes the child's log lines, whole, so that children do not cut
// into one another's.
func (c *child) copyLines(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			_, _ = c.out.Write(append([]byte("["+c.name+"] "), line...))
		}
		if err != nil {
			return
		}
	}
}

// lineWriter serialises whole lines of several writers.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
