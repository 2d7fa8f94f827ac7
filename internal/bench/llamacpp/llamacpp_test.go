package llamacpp

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// program puts a shell script in the place of a command.
func program(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func needsLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("llama.cpp's packages are used on linux/amd64 only")
	}
}

const libraries = "node_modules/@node-llama-cpp/linux-x64/bins/linux-x64"

func TestInstallationLeavesOneLibrary(t *testing.T) {
	needsLinux(t)
	program(t, "node", "exit 1")
	for lib, want := range map[Library]int{Haswell: 1, Best: 2} {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		program(t, "npm", "mkdir -p "+libraries+" && touch "+libraries+"/libggml-cpu-haswell.so "+libraries+"/libggml-cpu-zen4.so\n")
		dir, err := Install(t.Context(), lib, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		left, _ := filepath.Glob(filepath.Join(dir, libraries, "*"))
		if len(left) != want {
			t.Errorf("%s: %v are left", lib, left)
		}
		program(t, "npm", "echo must not be asked again >&2; exit 1")
		if again, err := Install(t.Context(), lib, func(string) {}); err != nil || again != dir {
			t.Errorf("the second time: %s, %v", again, err)
		}
	}
}

func TestInstallationThatFails(t *testing.T) {
	needsLinux(t)
	program(t, "node", "exit 1")
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	for script, want := range map[string]string{
		"echo no network >&2; exit 1": "no network",
		"true":                        "no CPU libraries",
		"mkdir -p " + libraries + " && touch " + libraries + "/libggml-cpu-zen4.so": "no haswell library",
	} {
		program(t, "npm", script)
		if _, err := Install(t.Context(), Haswell, func(string) {}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", script, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "hecate", "bench", "*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Install(t.Context(), Haswell, func(string) {}); !errors.Is(err, ErrMissing) {
		t.Errorf("without npm: %v", err)
	}
}

func TestPeer(t *testing.T) {
	program(t, "node", `echo '{"ready":"yes"}'
while read -r line; do echo '{"prefill":{"wall_ns":3,"cpu_ns":2},"decode":{"wall_ns":5,"cpu_ns":4}}'; done`)
	p, err := Start(t.Context(), Options{Dir: t.TempDir(), Model: "m.gguf", Sequences: 1, Context: 8, Batch: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 2 {
		got, err := p.Run(Task{Prompts: [][]int32{{1}}, Answers: [][]int32{{2}}})
		if want := (Times{Took{3, 2}, Took{5, 4}}); err != nil || got != want {
			t.Errorf("%v, %v", got, err)
		}
	}
}

func TestPeerThatFails(t *testing.T) {
	program(t, "node", "echo cannot read the model >&2; exit 1")
	if _, err := Start(t.Context(), Options{Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "cannot read the model") {
		t.Errorf("at the start: %v", err)
	}
	program(t, "node", "echo '{\"ready\":\"yes\"}'; read -r line; echo out of memory >&2; exit 1")
	p, err := Start(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Run(Task{}); err == nil || !strings.Contains(err.Error(), "out of memory") {
		t.Errorf("in between: %v", err)
	}
}
