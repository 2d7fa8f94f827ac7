// Package metrics exports what the rooms below already count as Prometheus
// metrics. It counts nothing itself, but for the histograms of answers: it reads
// a snapshot at each scrape, so a number exists in one place only. Labels are
// nodes, models and reasons, never sessions or requests.
package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"hecate/internal/event"
	"hecate/internal/report"
	"hecate/pool"
)

// Sources are what a scrape reads.
type Sources struct {
	Swarm  func() report.Status
	Pool   func() pool.Snapshot
	Events *event.Stream // nil: none
}

// Metrics is a registry of its own with the histograms that answers fill.
type Metrics struct {
	registry *prometheus.Registry
	Answers  *Answers
}

// New makes the registry.
func New(src Sources) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), Answers: newAnswers()}
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&swarmCollector{src.Swarm}, &poolCollector{src.Pool}, &eventCollector{src.Events},
	)
	m.Answers.register(m.registry)
	return m
}

// Register adds what another room counts.
func (m *Metrics) Register(c prometheus.Collector) { m.registry.MustRegister(c) }

// Handler serves GET /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// sink shortens sending one sample.
type sink chan<- prometheus.Metric

// labels are pairs of name and value.
func (s sink) send(kind prometheus.ValueType, name, help string, value float64, labels ...string) {
	var names, values []string
	for i := 0; i+1 < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	s <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, value, values...)
}

func (s sink) gauge(name, help string, value float64, labels ...string) {
	s.send(prometheus.GaugeValue, name, help, value, labels...)
}

func (s sink) counter(name, help string, value float64, labels ...string) {
	s.send(prometheus.CounterValue, name, help, value, labels...)
}

// by sends a counter per reason.
func (s sink) by(name, help, label string, counts map[string]uint64) {
	for reason, n := range counts {
		s.counter(name, help, float64(n), label, reason)
	}
}

// histogram sends counts per bucket, which Prometheus wants cumulative.
func (s sink) histogram(name, help string, h report.Histogram) {
	buckets, total := make(map[float64]uint64, len(h.Bounds)), uint64(0)
	for i, n := range h.Counts {
		total += uint64(n)
		if i < len(h.Bounds) {
			buckets[h.Bounds[i]] = total
		}
	}
	s <- prometheus.MustNewConstHistogram(prometheus.NewDesc(name, help, nil, nil), total, h.Sum, buckets)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
