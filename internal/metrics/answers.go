package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Answers are the histograms that need each single event. The names with gen_ai
// are OpenTelemetry's, in Prometheus' spelling.
type Answers struct {
	first, between, whole *prometheus.HistogramVec // by model
	gap                   *prometheus.HistogramVec // by kind of rescue
}

// seconds covers a fast token on a small model to a long answer on a slow one.
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

func newAnswers() *Answers {
	histogram := func(name, help, label string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: seconds}, []string{label})
	}
	return &Answers{
		first:   histogram("gen_ai_server_time_to_first_token_seconds", "From the request to its first token.", "gen_ai_request_model"),
		between: histogram("gen_ai_server_time_per_output_token_seconds", "Between two tokens of an answer, mean over the answer.", "gen_ai_request_model"),
		whole:   histogram("gen_ai_server_request_duration_seconds", "From the request to the end of its answer.", "gen_ai_request_model"),
		gap:     histogram("hecate_rescue_gap_seconds", "The pause that a survived failure made.", "kind"),
	}
}

func (a *Answers) register(r *prometheus.Registry) {
	r.MustRegister(a.first, a.between, a.whole, a.gap)
}

// First took so long.
func (a *Answers) First(model string, d time.Duration) {
	a.first.WithLabelValues(model).Observe(d.Seconds())
}

// Finished is an answer of so many tokens, the first of them after first.
func (a *Answers) Finished(model string, whole, first time.Duration, tokens int) {
	a.whole.WithLabelValues(model).Observe(whole.Seconds())
	if tokens > 1 {
		a.between.WithLabelValues(model).Observe((whole - first).Seconds() / float64(tokens-1))
	}
}

// Rescued is a pause that a failure made.
func (a *Answers) Rescued(kind string, gap time.Duration) {
	a.gap.WithLabelValues(kind).Observe(gap.Seconds())
}
