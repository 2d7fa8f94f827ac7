package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hecate/internal/sim"
)

type simDocument struct {
	Nodes    int          `json:"nodes"`
	Copies   int          `json:"copies"`
	Requests int          `json:"requests"`
	Results  []sim.Result `json:"results"`
}

func simulate(t *testing.T, args ...string) simDocument {
	t.Helper()
	o := command(t, "", append([]string{"hecate", "sim", "--json"}, args...)...)
	var doc simDocument
	if err := json.Unmarshal([]byte(o.out), &doc); o.code != 0 || err != nil {
		t.Fatalf("exit status %d, %v: %s", o.code, err, o.err)
	}
	for _, r := range doc.Results {
		if r.Finished+r.Lost+r.Refused != doc.Requests {
			t.Errorf("%s: %d finished, %d lost, %d refused of %d", r.Policy, r.Finished, r.Lost, r.Refused, doc.Requests)
		}
	}
	return doc
}

// The command of docs/simulator.md that makes the chart: our policies keep the
// hottest node of alike ones under 1.3 times the mean.
func TestSimBurst(t *testing.T) {
	chart := filepath.Join(t.TempDir(), "burst.svg")
	args := strings.Fields("--even --requests 3000 --burst 500 --telemetry-delay 2s --svg " + chart)
	doc := simulate(t, args...)
	if doc.Nodes != 60 || doc.Requests != 3500 || len(doc.Results) != len(sim.Policies()) {
		t.Fatalf("%d nodes, %d requests, %d policies", doc.Nodes, doc.Requests, len(doc.Results))
	}
	for _, r := range doc.Results[:2] {
		if r.Load.MaxOverMean >= 1.3 {
			t.Errorf("%s: the hottest node has %v of the mean", r.Policy, r.Load.MaxOverMean)
		}
	}
	svg, err := os.ReadFile(chart)
	if err != nil || !strings.HasPrefix(string(svg), "<svg ") || !strings.Contains(string(svg), "least-loaded") {
		t.Errorf("the chart (%v): %.80s", err, svg)
	}
	again, first := command(t, "", append([]string{"hecate", "sim", "--json"}, args...)...), doc
	if json.Unmarshal([]byte(again.out), &doc) != nil || doc.Results[0] != first.Results[0] {
		t.Error("the same command prints something else")
	}
}

func TestSimOfATopology(t *testing.T) {
	fromTop(t)
	doc := simulate(t, strings.Fields("--topology examples/swarm.json --requests 300 --kill gpu@5s+10s --policy adaptive --policy classic --seed 3")...)
	if doc.Nodes != 3 || len(doc.Results) != 2 || doc.Results[1].Policy != "classic" {
		t.Fatalf("%+v", doc)
	}
	for _, r := range doc.Results {
		if r.Rescued == 0 || r.Lost != 0 {
			t.Errorf("%s: %d rescued, %d lost; any one node may die", r.Policy, r.Rescued, r.Lost)
		}
	}
	o := command(t, "", "hecate", "sim", "--topology", "examples/swarm.json", "--requests", "50")
	if o.code != 0 || !strings.Contains(o.out, "LATENCY p50") || strings.Count(o.out, "\n") != 3+len(sim.Policies()) {
		t.Errorf("exit status %d:\n%s%s", o.code, o.out, o.err)
	}
}

func TestSimOfATrace(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "day.txt")
	if err := os.WriteFile(trace, []byte("0 100 20\n0.5 10 1 # short\n3 50 9 model-000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	doc := simulate(t, "--nodes", "9", "--trace", trace, "--policy", "round-robin")
	if doc.Requests != 3 || doc.Results[0].Finished != 3 {
		t.Errorf("%+v", doc)
	}
	if err := os.WriteFile(trace, []byte("0 100 20\nsoon 10 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, command(t, "", "hecate", "sim", "--nodes", "9", "--trace", trace), `line 2: time "soon"`)
}

func TestSimBadInput(t *testing.T) {
	for line, culprit := range map[string]string{
		"--policy fastest":             `"fastest"`,
		"--nodes 0":                    "0 nodes",
		"--nodes=-3":                   "-3 nodes",
		"--copies=-1":                  "--copies",
		"--requests 0":                 "no requests",
		"--requests=-1":                "--requests",
		"--rate=-1":                    "--rate",
		"--rate NaN":                   "--rate",
		"--requests 999999999999":      "--requests",
		"--prompt 0":                   "prompts of 0",
		"--kill ghost@1s":              `"ghost"`,
		"--kill ghost":                 `"ghost"`,
		"--kill gpu-00000@soon":        "soon",
		"--deaths 1000":                "--deaths",
		"--telemetry-delay=-1s":        "-1s",
		"--gateways=-1":                "gateways",
		"--slots=-1":                   "slots",
		"--trace missing.txt":          "missing.txt",
		"--topology missing.json":      "missing.json",
		"--svg /no/such/folder/a.svg":  "/no/such/folder/a.svg",
		"--preset slow":                "slow",
		"--nodes 1":                    "no model has a copy",
		"--kill server-00000@1s+100ms": "server-00000",
	} {
		t.Run(line, func(t *testing.T) {
			args := append(strings.Fields("hecate sim --nodes 6 --requests 20"), strings.Fields(line)...)
			refused(t, command(t, "", args...), culprit)
		})
	}
}
