package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"hecate/internal/event"
)

// eventCollector exports the stream of events.
type eventCollector struct{ stream *event.Stream }

func (*eventCollector) Describe(chan<- *prometheus.Desc) {}

func (c *eventCollector) Collect(ch chan<- prometheus.Metric) {
	if c.stream == nil {
		return
	}
	events, drops := c.stream.Counts()
	out := sink(ch)
	for kind, n := range events {
		out.counter("hecate_events_total", "What happened, by kind.", float64(n), "kind", string(kind))
	}
	for why, n := range drops {
		out.counter("hecate_event_drops_total", "Events that a subscriber did not get, by reason.", float64(n), "reason", string(why))
	}
}
