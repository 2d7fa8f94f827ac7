package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Spoilt topologies, each with what the error must name.
var spoilt = map[string]struct{ text, culprit string }{
	"not JSON":           {`{"models":[`, "JSON"},
	"no nodes":           {good(``, ``), "no node profiles"},
	"no nodes at all":    {`{"models":[{"id":"m","layers":4,"layer_bytes":10}]}`, "no node profiles"},
	"no models":          {`{"models":[],"nodes":[{"id":"a","memory":1000}]}`, "no models"},
	"duplicate node":     {good(`{"id":"gpu","memory":1000},{"id":"gpu","memory":2000}`, ``), `"gpu"`},
	"duplicate model":    {`{"models":[{"id":"twin","layers":4,"layer_bytes":1},{"id":"twin","layers":4,"layer_bytes":1}],"nodes":[{"id":"a","memory":1000}]}`, `"twin"`},
	"joiner is a node":   {good(`{"id":"gpu","memory":1000}`, `,"joiners":[{"id":"gpu","memory":1000}]`), `"gpu"`},
	"duplicate joiner":   {good(`{"id":"a","memory":1000}`, `,"joiners":[{"id":"mac","memory":1},{"id":"mac","memory":1}]`), `"mac"`},
	"zero layers":        {`{"models":[{"id":"flat","layers":0,"layer_bytes":1}],"nodes":[{"id":"a","memory":1000}]}`, `"flat"`},
	"negative layers":    {`{"models":[{"id":"flat","layers":-3,"layer_bytes":1}],"nodes":[{"id":"a","memory":1000}]}`, `"flat"`},
	"negative memory":    {good(`{"id":"debt","memory":-1}`, ``), "debt"},
	"negative size":      {`{"models":[{"id":"m","layers":4,"layer_bytes":-5}],"nodes":[{"id":"a","memory":1000}]}`, "-5"},
	"bad size":           {good(`{"id":"vague","memory":"much"}`, ``), "much"},
	"negative score":     {good(`{"id":"slow","memory":1000,"score":-2}`, ``), "slow"},
	"nameless node":      {good(`{"memory":1000}`, ``), "a node has no id"},
	"unknown key":        {good(`{"id":"a","memory":1000,"colour":"red"}`, ``), `"colour"`},
	"unknown key on top": {good(`{"id":"a","memory":1000}`, `,"nods":[]`), `"nods"`},
	"key given twice":    {good(`{"id":"a","memory":1000,"score":1,"score":2}`, ``), `"score"`},
}

// good is a topology with these nodes and whatever follows.
func good(nodes, more string) string {
	return `{"models":[{"id":"m","layers":4,"layer_bytes":10}],"nodes":[` + nodes + `]` + more + `}`
}

// A spoilt topology is refused alike by every command that reads one.
func TestSpoiltTopologies(t *testing.T) {
	for name, c := range spoilt {
		file := filepath.Join(t.TempDir(), "topology.json")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for command_, args := range map[string][]string{
			"plan":           {"hecate", "plan"},
			"what-if":        {"hecate", "plan", "--json", "--what-if", "a"},
			"explain":        {"hecate", "route", "explain"},
			"swarm-sim":      {"hecate", "swarm-sim"},
			"node swarm-sim": {"hecate-node", "swarm-sim", "--pipelines", "2"},
			"sim":            {"hecate", "sim"},
		} {
			t.Run(name+"/"+command_, func(t *testing.T) {
				refused(t, command(t, "", append(args, "--topology", file)...), c.culprit)
			})
		}
	}
}

// Mistakes on the command line itself.
func TestSpoiltCommands(t *testing.T) {
	fromTop(t)
	const home = "examples/swarm.json"
	for line, culprit := range map[string]string{
		"hecate plan --topology " + home + " --what-if ghost":          `"ghost"`,
		"hecate plan --topology " + home + " --copies 0":               "--copies",
		"hecate plan --topology " + home + " --copies=-2":              "--copies",
		"hecate plan --topology missing.json":                          "missing.json",
		"hecate route explain --topology missing.json":                 "missing.json",
		"hecate route explain ghost --topology " + home:                `"ghost"`,
		"hecate route explain --topology " + home + " --copies 0":      "--copies",
		"hecate route explain --topology " + home + " --max-tokens=-1": "-1",
		"hecate-node swarm-sim --topology missing.json":                "missing.json",
		"hecate-node swarm-sim":                                        "--topology",
		"hecate-node swarm-sim --topology " + home + " --kill ghost":   `"ghost"`,
		"hecate-node swarm-sim --topology " + home + " --pipelines 0":  "0 pipelines",
		"hecate-node swarm-sim --topology " + home + " --pipelines=-1": "-1 pipelines",
		"hecate-node swarm-sim --topology " + home + " --script no":    "no",
		"hecate plan --preset fast-lan":                                "--topology",
		"hecate plan --preset slow --topology " + home:                 "slow",
		"hecate plan --weight jumps=2 --topology " + home:              "jumps",
		"hecate plan --weight hop=-2 --topology " + home:               "hop",
		"hecate route explain --weight load=NaN --topology " + home:    "load",
		"hecate swarm-sim --weight load=x --topology " + home:          `"x"`,
		"hecate sim --weight laod=2 --topology " + home:                "laod",
		"hecate swarm-sim --topology " + home + " --colour":            "--colour",
	} {
		t.Run(line, func(t *testing.T) { refused(t, command(t, "", strings.Fields(line)...), culprit) })
	}
}

// swarmStory is what swarm-sim prints, as others read it.
type swarmStory struct {
	Steps []struct {
		Step  string `json:"step"`
		State string `json:"state"`
		Route *struct {
			Nodes    []string `json:"nodes"`
			Degraded bool     `json:"degraded"`
		} `json:"route"`
		Live   []any  `json:"live_pipelines"`
		Error  string `json:"error"`
		NoOp   bool   `json:"no_op"`
		Reason string `json:"reason"`
	} `json:"steps"`
	Valid *bool `json:"valid"`
}

// tell runs swarm-sim and reads its document, which must be all there is.
func tell(t *testing.T, args ...string) (swarmStory, outcome) {
	t.Helper()
	o := command(t, "", args...)
	var s swarmStory
	d := json.NewDecoder(strings.NewReader(o.out))
	if err := d.Decode(&s); err != nil {
		t.Fatalf("exit status %d, %v: %s%s", o.code, err, o.out, o.err)
	}
	if d.More() || s.Valid == nil || len(s.Steps) < 3 {
		t.Fatalf("want one document with steps and valid: %s", o.out)
	}
	for i, step := range []string{"start", "failover", "growth"} {
		if s.Steps[i].Step != step {
			t.Errorf("step %d is %q, want %q", i, s.Steps[i].Step, step)
		}
	}
	return s, o
}

// The command of the documentation, exactly, under both names.
func TestSwarmSim(t *testing.T) {
	fromTop(t)
	args := strings.Fields("hecate-node swarm-sim --topology examples/swarm.json --kill gpu --pipelines 2")
	story, o := tell(t, args...)
	if o.code != 0 || o.err != "" || !*story.Valid {
		t.Errorf("exit status %d, valid %v, standard error %q", o.code, *story.Valid, o.err)
	}
	if !strings.HasPrefix(o.out, `{"steps":[{"step":"start",`) || !strings.HasSuffix(o.out, `"valid":true}`+"\n") {
		t.Errorf("the document: %s", o.out)
	}
	if story.Steps[0].State != "healthy" || story.Steps[1].State != "degraded" || story.Steps[2].State != "healthy" {
		t.Errorf("states: %+v", story.Steps)
	}
	rescue := story.Steps[1].Route
	if rescue == nil || rescue.Degraded || len(story.Steps[1].Live) != len(story.Steps[0].Live)-1 {
		t.Fatalf("failover: %+v", story.Steps[1])
	}
	for _, n := range rescue.Nodes {
		if n == "gpu" {
			t.Error("the rescue runs over the dead node")
		}
	}
	args[0] = "hecate"
	if other := command(t, "", args...); other != o {
		t.Errorf("hecate swarm-sim differs: %+v", other)
	}
}

// Without joiners growth is recorded as a step without effect; a rescue that
// fails is recorded in its step.
func TestSwarmSimRecords(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	lonely := write("lonely.json", good(`{"id":"a","memory":100,"score":1}`, ``))
	story, o := tell(t, "hecate-node", "swarm-sim", "--topology", lonely, "--kill", "a", "--pipelines", "1")
	failover, growth := story.Steps[1], story.Steps[2]
	if failover.Error == "" || failover.Route != nil || failover.State != "failed" {
		t.Errorf("a rescue that cannot be: %+v", failover)
	}
	if !growth.NoOp || growth.Reason == "" {
		t.Errorf("growth without joiners: %+v", growth)
	}
	if o.code != 0 != !*story.Valid {
		t.Errorf("exit status %d with valid %v", o.code, *story.Valid)
	}

	// Two copies do not fit on one node: the story is told, and does not hold.
	story, o = tell(t, "hecate", "swarm-sim", "--topology", lonely, "--pipelines", "2")
	if o.code != 1 || *story.Valid || !strings.Contains(o.err, "does not hold") {
		t.Errorf("exit status %d, valid %v, %q", o.code, *story.Valid, o.err)
	}
	if !story.Steps[1].NoOp {
		t.Errorf("nobody was to be killed: %+v", story.Steps[1])
	}
}

func TestSwarmSimScript(t *testing.T) {
	fromTop(t)
	script := filepath.Join(t.TempDir(), "story.txt")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"hecate", "swarm-sim", "--topology", "examples/swarm.json", "--kill", "gpu", "--script", script}
	write("revive gpu # it is back\nload mini 0.9\nrequest prompt=100\nkill laptop\nrequest\n")
	story, o := tell(t, args...)
	if o.code != 0 || len(story.Steps) != 8 {
		t.Fatalf("exit status %d, %d steps: %s", o.code, len(story.Steps), o.err)
	}
	for i, step := range []string{"revive", "load", "request", "kill", "request"} {
		if !strings.HasPrefix(story.Steps[3+i].Step, step) {
			t.Errorf("step %d is %q, want %q", 3+i, story.Steps[3+i].Step, step)
		}
	}
	write("dance\n")
	refused(t, command(t, "", args...), "dance")
	write("kill gpu\nkill\n")
	refused(t, command(t, "", args...), "line 2")
	write("kill ghost\n")
	refused(t, command(t, "", args...), "ghost")
}
