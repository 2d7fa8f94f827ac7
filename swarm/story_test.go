package swarm

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the transcripts in testdata/stories anew")

// Every file in testdata/stories is one story: a topology and a script, the
// line "----", and what is then printed, one line per step. Regenerate with
// go test ./swarm -run Stories -rewrite.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, want, _ := strings.Cut(string(data), "----\n")
			got := tell(t, head)
			if *rewrite {
				if err := os.WriteFile(file, []byte(head+"----\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// tell runs the story of a file: "topology FILE" and "pipelines N" first, then
// the script.
func tell(t *testing.T, head string) string {
	t.Helper()
	var topology Topology
	opts := StoryOptions{Pipelines: 2, Bare: true}
	var script []string
	for _, line := range strings.Split(head, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && words[0] == "topology":
			topology = readTopology(t, words[1])
		case len(words) == 2 && words[0] == "pipelines":
			opts.Pipelines = int(words[1][0] - '0')
		default:
			script = append(script, line)
		}
	}
	var err error
	if opts.Script, err = ParseScript(strings.Join(script, "\n")); err != nil {
		t.Fatal(err)
	}
	story, err := RunStory(topology, opts)
	if err != nil {
		t.Fatal(err)
	}
	return story.String()
}

func readTopology(t testing.TB, file string) Topology {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	topology, err := DecodeTopology(data)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// The command line of the documentation must end valid.
func TestSimulationOfTheHome(t *testing.T) {
	story, err := RunStory(readTopology(t, "../examples/swarm.json"), StoryOptions{Kill: "gpu", Pipelines: 2})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(story, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if !story.Valid {
		t.Fatalf("not valid: %s", b)
	}
	var names []string
	for _, s := range story.Steps {
		names = append(names, s.Step)
		if s.Error != "" || s.Route == nil {
			t.Errorf("step %s: %s", s.Step, b)
		}
	}
	if got := strings.Join(names, " "); got != "start failover growth" {
		t.Errorf("steps %s", got)
	}
	if end := story.Steps[2]; end.State != Healthy || end.Generation != 2 || len(end.Live) < 2 {
		t.Errorf("at the end %s", b)
	}
}

func TestExamplesPlanValidly(t *testing.T) {
	files, err := filepath.Glob("../examples/*.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, file := range files {
		top := readTopology(t, file)
		p := mustPlan(t, Planner{}, top.Nodes, top.Models, nil)
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		t.Logf("%s\n%s\n%s\nidle %v\nmissing %v\nhurting %v", file, chainsText(p), strings.Join(p.Notes, "\n"), p.Idle, p.Unplaced, p.Hurting)
	}
}

func TestStoryRefusals(t *testing.T) {
	home := readTopology(t, "../examples/swarm.json")
	for _, c := range []struct {
		name   string
		top    Topology
		opts   StoryOptions
		script string
		want   string
	}{
		{"unknown node", home, StoryOptions{Pipelines: 2, Kill: "toaster"}, "", `unknown node "toaster"`},
		{"zero pipelines", home, StoryOptions{Kill: "gpu"}, "", "0 pipelines"},
		{"no nodes", Topology{Models: home.Models}, StoryOptions{Pipelines: 2}, "", "no node profiles"},
		{"unknown node in the script", home, StoryOptions{Pipelines: 2}, "kill gpu\nrevive toaster", `script line 2: unknown node "toaster"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var err error
			if c.opts.Script, err = ParseScript(c.script); err != nil {
				t.Fatal(err)
			}
			if _, err := RunStory(c.top, c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestParseScriptRefuses(t *testing.T) {
	for script, want := range map[string]string{
		"dance":                     `line 1: unknown command "dance"`,
		"kill":                      "kill with 0 arguments",
		"\n\nkill a b":              "line 3: kill with 2 arguments",
		"load a heavy":              `"heavy" is no number`,
		"load a -1":                 `"-1" is no number from 0 up`,
		"request prompt=many":       `prompt of "many" tokens`,
		"request layers=5-2":        `layers "5-2"`,
		"request m n":               `what is "n"?`,
		"request colour=blue":       `what is "colour=blue"?`,
		"load a NaN # not a number": `"NaN" is no number`,
	} {
		if _, err := ParseScript(script); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", script, err, want)
		}
	}
}
