package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// probe runs a command line in-process and gives what it said.
func probe(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main("hecate", args, strings.NewReader(""), &o, &e)
	return o.String(), e.String(), code
}

func settings(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hecate.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Flags win over the environment, that wins over the file; a table of a command
// wins over the top of the file.
func TestWhereSettingsComeFrom(t *testing.T) {
	file := settings(t, "nodes = 40\n[up]\nnodes = 50\n")
	refused := func(want string, args ...string) {
		t.Helper()
		// Each of these numbers is refused, and the refusal names it.
		_, errs, code := probe(t, args...)
		if code != exitUsage || !strings.Contains(errs, "--nodes is "+want) {
			t.Errorf("%v: code %d, %q, want a refusal of %s", args, code, errs, want)
		}
	}
	refused("50", "--config", file, "up")
	refused("40", "--config", settings(t, "nodes = 40\n"), "up")
	t.Setenv("HECATE_NODES", "60")
	refused("60", "--config", file, "up")
	refused("70", "--config", file, "up", "--nodes", "70")
}

func TestConfigurationIsChecked(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"unknown key":          {"speed = 3\n", "speed"},
		"unknown key in table": {"[up]\nspeed = 3\n", "up.speed"},
		"unknown command":      {"[fly]\nnodes = 3\n", "fly.nodes"},
		"not TOML":             {"nodes = = 3\n", "line 1"},
	} {
		_, errs, code := probe(t, "--config", settings(t, c.text), "version")
		if code != exitUsage || !strings.Contains(errs, c.says) {
			t.Errorf("%s: code %d, %q, want %q in it", name, code, errs, c.says)
		}
	}
	if _, errs, code := probe(t, "--config", filepath.Join(t.TempDir(), "none.toml"), "version"); code != exitUsage {
		t.Errorf("a file that is not there: %d %q", code, errs)
	}
}

func TestReadStreamWantsTheEnd(t *testing.T) {
	text := ""
	take := func(s string) { text += s }
	rescues, err := readStream(strings.NewReader("data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"hecate\":{\"rescues\":2}}\n\n: a comment\n\ndata: [DONE]\n\n"), take)
	if err != nil || rescues != 2 || text != "hi" {
		t.Errorf("%q, %d rescues, %v", text, rescues, err)
	}
	if _, err := readStream(strings.NewReader("data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"), take); err == nil {
		t.Error("a stream without its end was taken for a whole answer")
	}
	if _, err := readStream(strings.NewReader("data: {\"error\":{\"message\":\"gone\"}}\n\n"), take); err == nil || err.Error() != "gone" {
		t.Errorf("an error event: %v", err)
	}
}
