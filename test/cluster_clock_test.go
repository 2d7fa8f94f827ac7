//go:build long && !noengine

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hecate/test/harness"
)

// clockVariable says by how many seconds the clock of wrongClock's program is off.
const clockVariable = "HECATE_TEST_CLOCK"

// wrongClock builds hecate with another time.Now. The program's own sources are as
// they are: a seam in them would shift only the clocks that ask there, and
// certificates are checked by the standard library. Nothing less invasive reaches
// them, since the time comes from the vdso, which no preloaded library sees.
func wrongClock(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const reads = "sec, nsec, mono := runtimeNow()\n"
	head, body, found := strings.Cut(string(source), "func Now() Time {")
	if !found || !strings.Contains(body, reads) {
		t.Fatalf("%s reads the clock in another way than this test knows", original)
	}
	changed := strings.Replace(head, "import (", "import (\n\t\"syscall\"", 1) + "func Now() Time {" + strings.Replace(body, reads, reads+"\tsec += clockIsOff\n", 1) + `
var clockIsOff = func() (n int64) {
	text, _ := syscall.Getenv("` + clockVariable + `")
	for _, c := range text {
		switch {
		case c == '-':
			defer func() { n = -n }()
		default:
			n = 10*n + int64(c-'0')
		}
	}
	return n
}()
`
	dir := t.TempDir()
	replacement, overlay, binary := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "hecate")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replacement}})
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string]string{replacement: changed, overlay: string(list)} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := harness.Build(binary, "-overlay", overlay); err != nil {
		t.Fatal(err)
	}
	return binary
}

// A machine whose clock is off by an hour is told so in one line, with what to do:
// one that wants to join, and a member that starts again.
func TestAClockThatIsOffByAnHour(t *testing.T) {
	t.Parallel()
	binary := wrongClock(t)
	s := harness.Serve(t, "--copies", "1")
	off := func(seconds int) []string { // through a shell: it puts the other program in place of ours
		return []string{"env", fmt.Sprintf("%s=%d", clockVariable, seconds), "sh", "-c", `shift; exec "$0" "$@"`, binary}
	}
	for _, seconds := range []int{3600, -3600} {
		name, data, token := fmt.Sprintf("n%d", seconds+3600), filepath.Join(t.TempDir(), "n"), strings.TrimSpace(s.Do("token", "create"))
		args := []string{"--name", name, "--data", data, "--listen", "127.0.0.1:0", "--memory", "64MiB", "--score", "1", "--join", token}
		stranger := harness.JoinVia(t, off(seconds), args...)
		if err := stranger.Wait(); err == nil {
			t.Errorf("%d s: it joined", seconds)
		}
		if said := saidOf(stranger.Log(), "set the clock that is wrong"); len(said) != 1 {
			t.Errorf("%d s, joining: %d lines say what to do, want 1:\n%s", seconds, len(said), stranger.Log())
		}

		member := harness.JoinVia(t, nil, args...)
		s.Await("it is a member", time.Minute, func() bool { return listedNodes(t, s)[name].Status == "alive" })
		if err := member.Stop(); err != nil {
			t.Error(err)
		}
		again := harness.JoinVia(t, off(seconds), args...)
		s.Await("it says what is wrong", time.Minute, func() bool { return len(saidOf(again.Log(), "set the clock that is wrong")) > 0 })
		if again.Gone() {
			t.Errorf("%d s: a member ended; its clock may be set any time\n%s", seconds, again.Log())
		}
		if strings.Contains(again.Log(), "is it running") {
			t.Errorf("%d s: it doubts the gateway:\n%s", seconds, again.Log())
		}
		if err := again.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// saidOf are the lines of a log that have some text.
func saidOf(log, text string) (out []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	return out
}
