package engines

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hecate/swarm"
)

// A Collector reads the engines at each scrape of metrics.
type Collector struct{ Engines *Engines }

var (
	engineLabel = []string{"engine"}
	upDesc      = prometheus.NewDesc("hecate_engine_up", "1 when the engine is used, 0 when it is down or was not seen yet.", engineLabel, nil)
	openDesc    = prometheus.NewDesc("hecate_engine_circuit_open", "1 while the engine's circuit is not closed.", engineLabel, nil)
	runDesc     = prometheus.NewDesc("hecate_engine_running", "Requests that the engine computes for this gateway now.", engineLabel, nil)
	waitDesc    = prometheus.NewDesc("hecate_engine_waiting", "Requests that wait for a free place on an engine.", nil, nil)
	askDesc     = prometheus.NewDesc("hecate_engine_attempts_total", "Attempts made at the engine, probes of health left out.", engineLabel, nil)
	failDesc    = prometheus.NewDesc("hecate_engine_failures_total", "Attempts that failed, by kind.", []string{"engine", "kind"}, nil)
	firstDesc   = prometheus.NewDesc("hecate_engine_first_content_seconds", "Moving average of the time to the first content of a stream.", engineLabel, nil)
	tokenDesc   = prometheus.NewDesc("hecate_engine_token_seconds", "Moving average of the time per token.", engineLabel, nil)
)

// Describe implements prometheus.Collector.
func (c Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{upDesc, openDesc, runDesc, waitDesc, askDesc, failDesc, firstDesc, tokenDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c Collector) Collect(out chan<- prometheus.Metric) {
	r := c.Engines
	r.mu.Lock()
	defer r.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	waiting, now := 0, time.Now()
	for _, q := range r.mu.queues {
		waiting += len(q.waiting)
	}
	gauge(waitDesc, float64(waiting))
	for id, e := range r.mu.by {
		gauge(upDesc, truth(e.state == up), id)
		gauge(openDesc, truth(e.circuit.State(now) != swarm.CircuitClosed), id)
		gauge(runDesc, float64(e.running), id)
		out <- prometheus.MustNewConstMetric(askDesc, prometheus.CounterValue, float64(e.requests), id)
		for _, k := range Kinds() {
			out <- prometheus.MustNewConstMetric(failDesc, prometheus.CounterValue, float64(e.failures[k]), id, string(k))
		}
		if e.measures.first.Known {
			gauge(firstDesc, e.measures.first.Value/1000, id)
		}
		if e.measures.token.Known {
			gauge(tokenDesc, e.measures.token.Value/1000, id)
		}
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
