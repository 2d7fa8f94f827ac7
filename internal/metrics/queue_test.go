package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"

	"hecate/internal/report"
	"hecate/pool"
)

// Every reason for a refusal is a series of its own, and waits are cumulative.
func TestQueueMetrics(t *testing.T) {
	m := New(Sources{
		Swarm: func() report.Status {
			return report.Status{Answers: report.Answers{
				Queued: 3, Refused: map[string]int64{"queue_full": 2, "no_room": 0},
				QueueWait: report.Histogram{Bounds: []float64{0, 1}, Counts: []int64{5, 2, 1}, Sum: 4.5},
			}}
		},
		Pool: func() pool.Snapshot { return pool.Snapshot{} },
	})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		`hecate_answers_queued 3`,
		`hecate_answers_refused_total{reason="queue_full"} 2`, `hecate_answers_refused_total{reason="no_room"} 0`,
		`hecate_queue_wait_seconds_bucket{le="0"} 5`, `hecate_queue_wait_seconds_bucket{le="1"} 7`,
		`hecate_queue_wait_seconds_bucket{le="+Inf"} 8`, `hecate_queue_wait_seconds_sum 4.5`, `hecate_queue_wait_seconds_count 8`,
	} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("no line %q in\n%s", line, w.Body)
		}
	}
}
