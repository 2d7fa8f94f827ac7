//go:build long && linux && !noengine

package test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// releaseTargets are the archives that can be started on this kind of machine.
var releaseTargets = map[string]string{"amd64": "linux-x86_64-v3", "arm64": "linux-arm64"}

// unpackRelease builds the release archive and unpacks it onto an empty root.
func unpackRelease(t *testing.T) string {
	t.Helper()
	target := releaseTargets[runtime.GOARCH]
	if target == "" {
		t.Skipf("there is no release for %s", runtime.GOARCH)
	}
	build := exec.Command("../tools/release.sh", target)
	dist := t.TempDir()
	build.Env = append(os.Environ(), "VERSION=0.0.0-test", "DIST="+dist)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	archive := filepath.Join(dist, "hecate-0.0.0-test-"+target+".tar.gz")
	root := t.TempDir()
	if out, err := exec.Command("tar", "xzf", archive, "-C", root, "--strip-components", "1").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return root
}

// inRoot is a command that runs with an unpacked archive as its whole file
// system, but for /proc and /dev, in a mount namespace of its own.
func inRoot(ctx context.Context, root string, command ...string) *exec.Cmd {
	const script = `mkdir -p "$0/proc" "$0/dev" && mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"`
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, root}, command...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 15 * time.Second
	return cmd
}

// TestTheReleaseStartsOnACleanRoot: the archive needs nothing of the machine:
// no library, no file. What it says its version is, is the release's.
func TestTheReleaseStartsOnACleanRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("another root needs the rights of root")
	}
	if out, err := inRoot(t.Context(), t.TempDir(), "/none").CombinedOutput(); err != nil && bytes.Contains(out, []byte("permission denied")) {
		t.Skipf("mounting is not allowed here: %s", out)
	}
	root := unpackRelease(t)
	if out, err := inRoot(t.Context(), root, "/hecate", "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "hecate 0.0.0-test, kernels: ") {
		t.Fatalf("%v: %s", err, out)
	}
	up := inRoot(t.Context(), root, "/hecate", "up", "--listen", "127.0.0.1:0", "--data", "/data")
	var errs bytes.Buffer
	up.Stderr = &errs
	said, err := up.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = up.Process.Signal(os.Interrupt)
		if err := up.Wait(); err != nil {
			t.Errorf("the swarm ended with %v\n%s", err, errs.String())
		}
	}()
	if !saysReady(said) {
		t.Fatalf("never ready\n%s", errs.String())
	}
	out, err := inRoot(t.Context(), root, "/hecate", "chat", "--data", "/data", "--temperature", "0", "What is the capital of France?").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Paris") {
		t.Errorf("%v: %s", err, out)
	}
}

// saysReady reads until a swarm is ready; false when it ends before. The rest
// is read away, so that the swarm is not held up.
func saysReady(r io.Reader) bool {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "ready ") {
			go func() {
				for lines.Scan() {
				}
			}()
			return true
		}
	}
	return false
}

// TestTheReleasesOwnCheck: the script in the archive says that it works.
func TestTheReleasesOwnCheck(t *testing.T) {
	root := unpackRelease(t)
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "check.sh")).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "it works\n") {
		t.Errorf("%v: %s", err, out)
	}
}
