package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hecate/internal/engine/randmodel"
	"hecate/internal/gguf"
)

func tinyModel(t *testing.T) string {
	t.Helper()
	c := randmodel.Tiny(gguf.Q8_0, 5)
	c.Tied, c.RopeFactors = true, true
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := randmodel.WriteFile(path, c); err != nil {
		t.Fatal(err)
	}
	return path
}

// command runs hecate in this process.
func command(args ...string) (out, errs string, code int) {
	var o, e strings.Builder
	code = Main("hecate", args, strings.NewReader(""), &o, &e)
	return o.String(), e.String(), code
}

// Shards are whole files: the first knows that it has no head, the last has the
// tied one as its own, and what is missing in the file is written out.
func TestShards(t *testing.T) {
	file, dir := tinyModel(t), t.TempDir()
	for name, c := range map[string]struct {
		layers    string
		held      []bool
		head, emb bool
	}{
		"first": {"0-1", []bool{true, true, false, false}, false, true},
		"one":   {"2", []bool{false, false, true, false}, false, false},
		"last":  {"2-3", []bool{false, false, true, true}, true, false},
		"all":   {"0-3", []bool{true, true, true, true}, true, true},
	} {
		path := filepath.Join(dir, name+".gguf")
		if _, errs, code := command("model", "shard", file, "--layers", c.layers, "-o", path); code != 0 {
			t.Fatalf("%s: code %d: %s", name, code, errs)
		}
		out, errs, code := command("model", "inspect", path, "--json")
		if code != 0 {
			t.Fatalf("%s: code %d: %s", name, code, errs)
		}
		var doc inspection
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
		for l, held := range c.held {
			if (doc.LayerBytes[l] > 0) != held {
				t.Errorf("%s: layer %d has %d bytes, held %v", name, l, doc.LayerBytes[l], held)
			}
		}
		if doc.TiedHead != (name == "all" && doc.TiedHead) || (doc.HeadBytes > 0) != c.head || (doc.EmbeddingBytes > 0) != c.emb || doc.Refused != "" {
			t.Errorf("%s: head %d (tied %v), embedding %d, refused %q", name, doc.HeadBytes, doc.TiedHead, doc.EmbeddingBytes, doc.Refused)
		}
		if doc.Metadata["llama.rope.freq_base"] == "" {
			t.Errorf("%s: the default of rope.freq_base is not written out", name)
		}
	}
}

// What cannot be done is the caller's mistake, said in one line, and leaves nothing.
func TestBadModelCommands(t *testing.T) {
	file, dir := tinyModel(t), t.TempDir()
	broken := filepath.Join(dir, "broken.gguf")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, data[:len(data)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.gguf")
	for name, c := range map[string]struct {
		args []string
		want string
		code int
	}{
		"layers past the end":    {[]string{"shard", file, "--layers", "2-9", "-o", out}, "has layers 0 to 3", 2},
		"layers in no order":     {[]string{"shard", file, "--layers", "3-1", "-o", out}, "is no range of layers", 2},
		"layers in words":        {[]string{"shard", file, "--layers", "all", "-o", out}, "is no range of layers", 2},
		"onto itself":            {[]string{"shard", file, "--layers", "0-1", "-o", file}, "is the file itself", 2},
		"half a file":            {[]string{"shard", broken, "--layers", "0-1", "-o", out}, "beyond the end of the file", 2},
		"half a file, looked at": {[]string{"inspect", broken}, "beyond the end of the file", 2},
		"a budget in words":      {[]string{"inspect", file, "--budget", "much"}, "--budget much", 2},
		"no gateway":             {[]string{"add", file, "--data", dir}, "no gateway runs there", 1},
		"no copies":              {[]string{"add", file, "--data", dir, "--copies", "65"}, "--copies is 65", 2},
		"no such reference":      {[]string{"pull", "../x", "--registry", "https://x", "--data", dir}, "names no model of a registry", 2},
		"a name that is a path":  {[]string{"rm", "../x", "--data", dir}, "must start with a letter or a digit", 2},
	} {
		_, errs, code := command(append([]string{"model"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") > 1 {
			t.Errorf("%s: code %d: %q, want %d and %q in one line", name, code, errs, c.code, c.want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*out*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What fits where is planned on the budgets that were given.
func TestInspectOnBudgets(t *testing.T) {
	out, errs, code := command("model", "inspect", tinyModel(t), "--budget", "64MiB,64MiB", "--copies", "2")
	if code != 0 || strings.Count(out, "layers 0-3") < 3 || !strings.Contains(out, "how it is computed") || !strings.Contains(out, "exact") {
		t.Errorf("code %d: %s\n%s", code, errs, out)
	}
	out, _, _ = command("model", "inspect", tinyModel(t), "--budget", "1MiB")
	if !strings.Contains(out, "found no room") {
		t.Errorf("on a node that is too small: %s", out)
	}
}
