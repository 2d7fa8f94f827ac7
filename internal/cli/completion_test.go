package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestAShellAsksForCompletions(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{"hecate ", []string{"up", "serve", "chat", "status", "top", "completion"}},
		{"hecate no", []string{"node"}},
		{"hecate node ", []string{"ls", "pause", "resume", "drain", "remove", "run"}},
		{"hecate up --al", []string{"--allow-chaos", "--allow-host"}},
	} {
		t.Setenv("COMP_LINE", c.line)
		out, errs, code := probe(t)
		if code != 0 || errs != "" {
			t.Errorf("%q: code %d, %s", c.line, code, errs)
		}
		for _, word := range c.want {
			if !slices.Contains(strings.Fields(out), word) {
				t.Errorf("%q: %q is not among %q", c.line, word, strings.Fields(out))
			}
		}
	}
}

func TestCompletionNamesThisProgram(t *testing.T) {
	for shell, word := range map[string]string{"bash": "complete -C", "zsh": "bashcompinit", "fish": "complete -f -c hecate"} {
		out, _, code := probe(t, "completion", shell)
		if code != 0 || !strings.Contains(out, word) || !strings.Contains(out, ".test") {
			t.Errorf("%s: %d %q", shell, code, out)
		}
	}
	if _, errs, code := probe(t, "completion", "tcsh"); code != exitUsage || !strings.Contains(errs, "bash") {
		t.Errorf("tcsh: %d %q", code, errs)
	}
}
