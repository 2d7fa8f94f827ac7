package llamacpp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Options of a peer.
type Options struct {
	Dir       string // from Install
	Model     string // GGUF file
	Sequences int    // at most, side by side
	Context   int    // tokens of each of them
	Batch     int    // rows computed at once
}

// Peer is llama.cpp in a process of its own, on one thread. It is not safe for
// concurrent use.
type Peer struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
	errs  bytes.Buffer
}

// Task is what to compute: prompts, then answers, whose tokens are given. All
// answers are equally long.
type Task struct {
	Prompts [][]int32 `json:"prompts"`
	Answers [][]int32 `json:"answers"`
}

// Took is how long something took.
type Took struct {
	Wall time.Duration `json:"wall_ns"`
	CPU  time.Duration `json:"cpu_ns"` // of the whole process
}

// Times are what a task took.
type Times struct {
	Prefill Took `json:"prefill"`
	Decode  Took `json:"decode"`
}

// Start loads a model. The process ends with ctx or Close.
func Start(ctx context.Context, o Options) (*Peer, error) {
	p := &Peer{cmd: exec.CommandContext(ctx, "node", filepath.Join(o.Dir, "peer.mjs"), o.Model,
		strconv.Itoa(o.Sequences), strconv.Itoa(o.Context), strconv.Itoa(o.Batch))}
	p.cmd.Dir, p.cmd.Stderr = o.Dir, &p.errs
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start llama.cpp: %w", err)
	}
	p.lines = bufio.NewReader(out)
	var ready struct{ Ready string }
	if err := p.read(&ready); err != nil {
		p.Close()
		return nil, fmt.Errorf("start llama.cpp on %s: %w", o.Model, err)
	}
	return p, nil
}

// Run computes a task after forgetting the one before.
func (p *Peer) Run(t Task) (Times, error) {
	b, err := json.Marshal(t)
	if err != nil {
		return Times{}, fmt.Errorf("ask llama.cpp: %w", err)
	}
	var times Times
	if _, err = p.in.Write(append(b, '\n')); err == nil {
		err = p.read(&times)
	}
	if err != nil {
		return Times{}, fmt.Errorf("let llama.cpp compute: %w", err)
	}
	return times, nil
}

// read decodes the next line; when there is none it says what the process wrote
// as it failed.
func (p *Peer) read(into any) error {
	line, err := p.lines.ReadBytes('\n')
	if err != nil {
		_ = p.in.Close()
		_ = p.cmd.Wait() // then all that it wrote is there
		return fmt.Errorf("it ended: %w: %s", err, strings.TrimSpace(p.errs.String()))
	}
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("it says %.200q: %w", line, err)
	}
	return nil
}

// Close ends the process.
func (p *Peer) Close() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}
