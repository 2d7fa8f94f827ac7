package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hecate/internal/report"
	"hecate/pool"
)

// scrape is what Prometheus would read.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// Every reason that a real pool knows is exported, also while it counts nothing.
func TestEveryReasonOfThePoolHasAMetric(t *testing.T) {
	p, err := pool.New(pool.Config{NodeID: "gateway", Plaintext: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context())
	s := p.Snapshot()
	text := scrape(t, New(Sources{Swarm: func() report.Status { return report.Status{} }, Pool: p.Snapshot}))
	for metric, counts := range map[string]map[string]uint64{
		`hecate_pool_drops_total{reason=`:           s.Drops,
		`hecate_pool_sessions_closed_total{reason=`: s.SessionsClosed,
		`hecate_pool_writer_losses_total{reason=`:   s.WriterLosses,
		`hecate_pool_open_failures_total{reason=`:   s.OpenFailures,
		`hecate_pool_commits_total{outcome=`:        s.Commits,
		`hecate_pool_replacements_total{outcome=`:   s.Replacements,
		`hecate_pool_connects_total{outcome=`:       s.Connects,
		`hecate_pool_force_closes_total{cause=`:     s.ForceCloses,
	} {
		if len(counts) == 0 {
			t.Errorf("%s: the pool names no reason at all", metric)
		}
		for reason := range counts {
			if !strings.Contains(text, metric+`"`+reason+`"}`) {
				t.Errorf("%s%q} is missing", metric, reason)
			}
		}
	}
}

func TestTheSwarmIsExported(t *testing.T) {
	load := 0.5
	st := report.Status{
		State: "degraded", Generation: 7,
		Nodes:   []report.Node{{ID: "mini", Alive: true, Load: &load, TokensComputed: 42, MemoryBudget: 100}, {ID: "desk"}},
		Models:  []report.Model{{ID: "m", Ready: true, Pipelines: []report.Pipeline{{Live: true}, {}}}},
		Answers: report.Answers{Running: 2, Lost: 1, Degraded: 4, Rescues: map[string]int64{"splice": 3}},
	}
	snap := pool.Snapshot{
		Groups:  []pool.GroupSnapshot{{Group: "mini", Family: pool.IP4, Contours: map[string]uint64{"active": 3}, FloorTarget: 3}},
		Writers: []pool.WriterSnapshot{{Group: "mini", QueueBytes: 10, RoundTrip: time.Millisecond}, {Group: "mini", QueueBytes: 5}},
	}
	m := New(Sources{Swarm: func() report.Status { return st }, Pool: func() pool.Snapshot { return snap }})
	m.Answers.First("m", 20*time.Millisecond)
	m.Answers.Finished("m", time.Second, 20*time.Millisecond, 50)
	m.Answers.Rescued("splice", 5*time.Millisecond)
	text := scrape(t, m)
	for _, want := range []string{
		`hecate_swarm_state{state="degraded"} 1`,
		`hecate_swarm_state{state="healthy"} 0`,
		`hecate_plan_generation 7`,
		`hecate_node_alive{node="desk"} 0`,
		`hecate_node_load{node="mini"} 0.5`,
		`hecate_node_tokens_total{node="mini"} 42`,
		`hecate_model_copies{model="m"} 2`,
		`hecate_model_copies_live{model="m"} 1`,
		`hecate_answers_lost_total 1`,
		`hecate_answers_degraded_total 4`,
		`hecate_rescues_total{kind="splice"} 3`,
		`hecate_pool_writers{contour="active",family="ip4",group="mini"} 3`,
		`hecate_pool_queue_bytes{group="mini"} 15`,
		`hecate_pool_round_trip_seconds{group="mini"} 0.001`,
		`gen_ai_server_time_to_first_token_seconds_count{gen_ai_request_model="m"} 1`,
		`hecate_rescue_gap_seconds_count{kind="splice"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %q", want)
		}
	}
	if strings.Contains(text, `hecate_node_load{node="desk"}`) {
		t.Error("a load that nobody measured is exported")
	}
}
