package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"hecate/internal/report"
)

// swarmCollector exports nodes, models and answers.
type swarmCollector struct{ status func() report.Status }

func (*swarmCollector) Describe(chan<- *prometheus.Desc) {}

func (c *swarmCollector) Collect(ch chan<- prometheus.Metric) {
	st, out := c.status(), sink(ch)
	for _, state := range []string{"healthy", "degraded", "failed"} {
		out.gauge("hecate_swarm_state", "1 for the state that the swarm is in.", truth(st.State == state), "state", state)
	}
	out.gauge("hecate_plan_generation", "Generation of the plan.", float64(st.Generation))
	for i := range st.Nodes {
		nodeMetrics(out, &st.Nodes[i])
	}
	for i := range st.Models {
		modelMetrics(out, &st.Models[i])
	}
	a := st.Answers
	out.gauge("hecate_answers_running", "Answers being computed.", float64(a.Running))
	out.gauge("hecate_answers_queued", "Requests waiting for room.", float64(a.Queued))
	out.gauge("hecate_answers_midway", "Of the queued ones, answers that had begun and gave way.", float64(a.Midway))
	out.counter("hecate_answers_gave_way_total", "Times that an answer found no room to grow, and gave back what it had.", float64(a.GaveWay))
	out.counter("hecate_answers_finished_total", "Requests answered to the end.", float64(a.Finished))
	out.counter("hecate_answers_left_total", "Requests whose client left.", float64(a.Left))
	out.counter("hecate_answers_lost_total", "Answers that could not go on.", float64(a.Lost))
	out.counter("hecate_answers_degraded_total", "Requests that were put to a fallback model.", float64(a.Degraded))
	for reason, n := range a.Refused {
		out.counter("hecate_answers_refused_total", "Requests that got no room, by why.", float64(n), "reason", reason)
	}
	out.histogram("hecate_queue_wait_seconds", "How long requests waited for room.", a.QueueWait)
	for kind, n := range a.Rescues {
		out.counter("hecate_rescues_total", "Failures survived, by how.", float64(n), "kind", kind)
	}
}

func nodeMetrics(out sink, n *report.Node) {
	out.gauge("hecate_node_alive", "1 when the node lives.", truth(n.Alive), "node", n.ID)
	for name, v := range map[string]*float64{"hecate_node_latency_ms": n.LatencyMS, "hecate_node_load": n.Load, "hecate_node_score": n.Score, "hecate_node_round_trip_ms": n.RoundTripMS} {
		if v != nil {
			out.gauge(name, "Moving average of the node.", *v, "node", n.ID)
		}
	}
	out.gauge("hecate_node_memory_used_bytes", "Weights and KV cache.", float64(n.MemoryUsed), "node", n.ID)
	out.gauge("hecate_node_memory_budget_bytes", "What they may take.", float64(n.MemoryBudget), "node", n.ID)
	out.counter("hecate_node_tokens_total", "Tokens computed through the node's layers.", float64(n.TokensComputed), "node", n.ID)
	out.gauge("hecate_node_sessions", "Stages open on the node.", float64(n.Sessions), "node", n.ID)
	out.gauge("hecate_node_kv_cells", "KV cells in all.", float64(n.Cells), "node", n.ID)
	out.gauge("hecate_node_kv_cells_free", "KV cells free.", float64(n.FreeCells), "node", n.ID)
}

func modelMetrics(out sink, m *report.Model) {
	out.gauge("hecate_model_ready", "1 when a copy can be asked.", truth(m.Ready), "model", m.ID)
	live := 0
	for _, p := range m.Pipelines {
		if p.Live {
			live++
		}
	}
	out.gauge("hecate_model_copies", "Planned copies.", float64(len(m.Pipelines)), "model", m.ID)
	out.gauge("hecate_model_copies_live", "Copies that live.", float64(live), "model", m.ID)
}
