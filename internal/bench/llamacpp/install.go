// Package llamacpp runs llama.cpp beside our engine, for comparisons only: its
// build for Linux x86-64 out of the npm packages of node-llama-cpp, in a folder of
// the user's cache, as a child process that computes what it is told. Nothing
// else of HECATE needs it.
package llamacpp

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Version is that of the npm packages.
const Version = "3.21.1"

// Library names which of llama.cpp's CPU libraries is used.
type Library string

const (
	Haswell Library = "haswell" // AVX2, FMA and F16C, like our own C flags
	Best    Library = "best"    // whichever it takes on this processor
)

//go:embed peer.mjs
var peer []byte

// ErrMissing is wrapped by errors that say what has to be installed first.
var ErrMissing = errors.New("comparing with llama.cpp needs Node.js 20 or later and npm")

// Install makes sure that llama.cpp is in the user's cache folder and returns
// its folder; the first time npm fetches some 80 MB. progress is told what goes on.
func Install(ctx context.Context, lib Library, progress func(string)) (string, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("comparing with llama.cpp works on linux/amd64 only, this is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("%w: there is no %s; on Debian or Ubuntu: apt-get install nodejs npm", ErrMissing, tool)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for llama.cpp: %w", err)
	}
	dir := filepath.Join(cache, "hecate", "bench", fmt.Sprintf("llama.cpp-%s-%s", Version, lib))
	if !installed(dir) {
		progress("installing llama.cpp from npm, once")
		if err := install(ctx, dir, lib); err != nil {
			return "", err
		}
	}
	return dir, os.WriteFile(filepath.Join(dir, "peer.mjs"), peer, 0o600)
}

// done is written when an installation is complete.
const done = "complete"

func installed(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, done))
	return err == nil
}

// install works in a folder beside, so that a broken try leaves nothing.
func install(ctx context.Context, dir string, lib Library) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("make a folder for llama.cpp: %w", err)
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), "llama.cpp-part-")
	if err != nil {
		return fmt.Errorf("make a folder for llama.cpp: %w", err)
	}
	defer os.RemoveAll(part)
	if err := os.WriteFile(filepath.Join(part, "package.json"), []byte(`{"private":true}`), 0o600); err != nil {
		return fmt.Errorf("install llama.cpp: %w", err)
	}
	// Without scripts: nothing is to be built or fetched beside the packages.
	cmd := exec.CommandContext(ctx, "npm", "install", "--save-exact", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund",
		"node-llama-cpp@"+Version, "@node-llama-cpp/linux-x64@"+Version)
	cmd.Dir = part
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("install llama.cpp with npm: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	if err := leave(part, lib); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(part, done), nil, 0o600); err != nil {
		return fmt.Errorf("install llama.cpp: %w", err)
	}
	_ = os.RemoveAll(dir) // what an interrupted installation may have left
	if err := os.Rename(part, dir); err != nil && !installed(dir) {
		return fmt.Errorf("install llama.cpp: %w", err)
	}
	return nil
}

// leave removes all CPU libraries but the wanted one: llama.cpp takes the best of
// those that it finds.
func leave(dir string, lib Library) error {
	libs, err := filepath.Glob(filepath.Join(dir, "node_modules", "@node-llama-cpp", "linux-x64", "bins", "linux-x64", "libggml-cpu-*.so"))
	if err != nil || len(libs) == 0 {
		return fmt.Errorf("install llama.cpp: its packages have no CPU libraries (%w)", errors.Join(err, os.ErrNotExist))
	}
	if lib == Best {
		return nil
	}
	found := false
	for _, path := range libs {
		if filepath.Base(path) == "libggml-cpu-"+string(lib)+".so" {
			found = true
			continue
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("install llama.cpp: %w", err)
		}
	}
	if !found {
		return fmt.Errorf("install llama.cpp: its packages have no %s library", lib)
	}
	return nil
}
