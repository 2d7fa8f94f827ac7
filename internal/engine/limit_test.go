//go:build !noengine && cgo && linux

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"hecate/internal/engine/randmodel"
	"hecate/internal/gguf"
)

// A process that computes may take, besides its account, so much for the
// program, Go's heap, the test's own buffers and what malloc keeps.
const limitSlack = 64 << 20

// sizeable is a model whose account, over 100 MB, is large beside the slack.
func sizeable(architecture string) randmodel.Config {
	c := randmodel.Tiny(gguf.Q8_0, 3)
	c.Arch, c.Width, c.Inner, c.Heads, c.Layers, c.Vocab = architecture, 512, 2048, 8, 12, 16000
	c.Window, c.YaRN = map[string]int{"gemma3": 64}[architecture], architecture == "mistral3"
	return c
}

var sizeableOptions = Options{Cells: 4096, MaxBatch: 64}

// TestWithinALimit computes with full batches in a process that the system
// would kill if it took more memory than the account says and a constant.
// That process also compares the account with its resident set.
func TestWithinALimit(t *testing.T) {
	if path := os.Getenv("HECATE_TEST_MODEL"); path != "" {
		computeWithin(t, path)
		return
	}
	for _, architecture := range []string{"llama", "qwen2", "qwen3", "gemma3", "mistral3"} {
		t.Run(architecture, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.gguf")
			if err := randmodel.WriteFile(path, sizeable(architecture)); err != nil {
				t.Fatal(err)
			}
			group := memoryGroup(t, account(t, path)+limitSlack)
			c := exec.Command(os.Args[0], "-test.run", "^TestWithinALimit$", "-test.v")
			c.Env = append(os.Environ(), "HECATE_TEST_MODEL="+path, "HECATE_TEST_GROUP="+group, "GOGC=20")
			out, err := c.CombinedOutput()
			if err != nil || !bytes.Contains(out, []byte("--- PASS")) {
				t.Errorf("%v\n%s", err, out)
			}
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, "account") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

// memoryGroup makes a control group with a limit in bytes, and returns the file
// that takes processes in.
func memoryGroup(t *testing.T, most int64) string {
	t.Helper()
	for _, version := range []struct{ dir, limit, swap string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"},
		{"/sys/fs/cgroup", "memory.max", "memory.swap.max"},
	} {
		if _, err := os.Stat(filepath.Join(version.dir, "cgroup.procs")); err != nil {
			continue
		}
		dir, err := os.MkdirTemp(version.dir, "hecate-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		if os.WriteFile(filepath.Join(dir, version.limit), fmt.Append(nil, most), 0o600) == nil {
			return filepath.Join(dir, "cgroup.procs")
		}
	}
	t.Skip("needs leave to make a control group with a memory limit")
	return ""
}

// account is what the engine says the model takes when it computes.
func account(t *testing.T, path string) int64 {
	t.Helper()
	e := newEngine(t, sizeableOptions)
	defer e.Close()
	load(t, e, "m", path, 0, 11)
	crowd(t, e)
	return e.Memory().Used()
}

// measured is an engine that computes, what its account says, and by how much the
// process grew with it.
func measured(t *testing.T, path string) (e Engine, used, grew int64) {
	t.Helper()
	e = newEngine(t, sizeableOptions)
	debug.FreeOSMemory()
	returnFreeMemory()
	before := residentSet(t)
	load(t, e, "m", path, 0, 11)
	crowd(t, e)
	debug.FreeOSMemory()
	used, grew = e.Memory().Used(), residentSet(t)-before
	t.Logf("account %d, resident set grew by %d: %+.1f%%", used, grew, 100*float64(grew-used)/float64(used))
	return e, used, grew
}

// computeWithin is what the limited process does.
func computeWithin(t *testing.T, path string) {
	if err := os.WriteFile(os.Getenv("HECATE_TEST_GROUP"), fmt.Append(nil, os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	account(t, path) // what is set up once per process is not the model's
	e, used, grew := measured(t, path)
	const heap = 12 << 20 // of Go and malloc, which the account leaves out
	fits := func() bool { return grew <= used+used/20+heap && grew >= used-used/20-heap }
	for range 2 { // one measurement scatters by a tenth
		if !fits() {
			e.Close()
			e, used, grew = measured(t, path)
		}
	}
	defer func() { e.Close() }()
	if !fits() {
		t.Errorf("the resident set grew by %d, the account says %d", grew, used)
	}
	small := newEngine(t, Options{Cells: 4096, MaxBatch: 64, MemoryBudget: used / 2})
	defer small.Close()
	err := small.LoadLayers(context.Background(), LoadRequest{Model: "n", Path: path, Layers: Range{0, 11}}, nil)
	var short *BudgetError
	if !errors.As(err, &short) {
		t.Errorf("with half the budget: %v", err)
	}
	crowd(t, e)
}

// crowd runs eight prompts and some steps side by side.
func crowd(t *testing.T, e Engine) {
	t.Helper()
	var wg sync.WaitGroup
	for range 8 {
		s := open(t, e, "m", Range{0, 11}, 400)
		defer s.Close() // not before the others end: they would take its cells, and fewer be touched
		wg.Go(func() {
			if _, err := s.Step(context.Background(), Input{Tokens: make([]int32, 70), Want: WantLast}); err != nil {
				t.Error(err)
			}
			for i := range 2 {
				if _, err := s.Step(context.Background(), Input{Position: 70 + i, Tokens: []int32{7}, Want: WantLast}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
