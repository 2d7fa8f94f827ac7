package metrics

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hecate/internal/report"
	"hecate/pool"
)

// The dashboard and the alerts that ship as examples ask for metrics that exist,
// by labels that these have.
func TestExamplesAskForWhatIsExported(t *testing.T) {
	text := scrape(t, everything())
	files, err := filepath.Glob("../../examples/monitoring/*")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	name := regexp.MustCompile(`\b(hecate|gen_ai)_[a-z_]+\b`)
	asked := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, metric := range name.FindAllString(string(raw), -1) {
			asked++
			if !strings.Contains(text, "\n"+metric+"{") && !strings.Contains(text, "\n"+metric+" ") {
				t.Errorf("%s asks for %s, which nothing exports", filepath.Base(file), metric)
			}
		}
		for _, by := range regexp.MustCompile(`by \(([a-z_, ]+)\)`).FindAllStringSubmatch(string(raw), -1) {
			for label := range strings.SplitSeq(by[1], ", ") {
				if !strings.Contains(text, label+`="`) {
					t.Errorf("%s groups by %s, which no metric has", filepath.Base(file), label)
				}
			}
		}
	}
	if asked < 30 {
		t.Errorf("only %d metrics were found in the examples", asked)
	}
}

// everything has a sample of every metric.
func everything() *Metrics {
	one := 1.0
	st := report.Status{
		Nodes:  []report.Node{{ID: "mini", LatencyMS: &one, Load: &one, Score: &one, RoundTripMS: &one}},
		Models: []report.Model{{ID: "m"}},
		Answers: report.Answers{
			Rescues: map[string]int64{"splice": 1}, Refused: map[string]int64{"queue_full": 1},
			QueueWait: report.Histogram{Bounds: []float64{1}, Counts: []int64{1, 0}},
		},
	}
	snap := pool.Snapshot{
		Groups:  []pool.GroupSnapshot{{Group: "mini", Family: pool.IP4}},
		Writers: []pool.WriterSnapshot{{Group: "mini"}},
	}
	m := New(Sources{Swarm: func() report.Status { return st }, Pool: func() pool.Snapshot { return snap }})
	m.Answers.First("m", time.Second)
	m.Answers.Finished("m", 2*time.Second, time.Second, 5)
	m.Answers.Rescued("splice", time.Second)
	return m
}
