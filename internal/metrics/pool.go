package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"hecate/pool"
)

// poolCollector exports the data plane.
type poolCollector struct{ snapshot func() pool.Snapshot }

func (*poolCollector) Describe(chan<- *prometheus.Desc) {}

func (c *poolCollector) Collect(ch chan<- prometheus.Metric) {
	s, out := c.snapshot(), sink(ch)
	for i := range s.Groups {
		groupMetrics(out, &s.Groups[i])
	}
	writerMetrics(out, s.Writers)
	generationMetrics(out, s.Generation)
	out.by("hecate_pool_commits_total", "Activations of generations, by outcome.", "outcome", s.Commits)
	out.by("hecate_pool_replacements_total", "Replacements of writers, by outcome.", "outcome", s.Replacements)
	out.by("hecate_pool_connects_total", "Tries to connect a writer, by outcome.", "outcome", s.Connects)
	out.by("hecate_pool_writer_losses_total", "Writers that ended, by reason.", "reason", s.WriterLosses)
	out.by("hecate_pool_sessions_closed_total", "Sessions that ended, by reason.", "reason", s.SessionsClosed)
	out.by("hecate_pool_open_failures_total", "Sessions that could not be opened, by reason.", "reason", s.OpenFailures)
	out.by("hecate_pool_drops_total", "Frames dropped, by reason.", "reason", s.Drops)
	out.by("hecate_pool_force_closes_total", "Writers closed with sessions on them, by cause.", "cause", s.ForceCloses)
	out.by("hecate_pool_probes_total", "Nodes that kept somebody waiting and were asked, by outcome.", "outcome", s.Probes)
	out.gauge("hecate_pool_sessions_open", "Sessions open now.", float64(s.SessionsOpen))
	out.counter("hecate_pool_sessions_opened_total", "Sessions opened.", float64(s.SessionsOpened))
	out.gauge("hecate_pool_direct_open", "Fallback connections open now.", float64(s.DirectOpen))
	out.gauge("hecate_pool_buffered_bytes", "Bytes queued in either direction now.", float64(s.BufferedBytes))
	out.counter("hecate_pool_pings_sent_total", "PINGs sent.", float64(s.PingsSent))
	out.counter("hecate_pool_pings_missed_total", "PINGs that were not answered in time.", float64(s.PingsMissed))
	for way, n := range map[string][2]uint64{"out": {s.FramesSent, s.BytesSent}, "in": {s.FramesReceived, s.BytesReceived}} {
		out.counter("hecate_pool_frames_total", "Frames, by direction.", float64(n[0]), "direction", way)
		out.counter("hecate_pool_bytes_total", "Payload bytes, by direction.", float64(n[1]), "direction", way)
	}
}

func groupMetrics(out sink, g *pool.GroupSnapshot) {
	at := []string{"group", g.Group, "family", string(g.Family)}
	with := func(more ...string) []string { return append(append([]string{}, at...), more...) }
	for contour, n := range g.Contours {
		out.gauge("hecate_pool_writers", "Writers, by contour.", float64(n), with("contour", contour)...)
	}
	for health, n := range g.Health {
		out.gauge("hecate_pool_writers_health", "Writers, by health.", float64(n), with("health", health)...)
	}
	out.gauge("hecate_pool_floor_target", "Writers that there should be.", float64(g.FloorTarget), at...)
	out.gauge("hecate_pool_floor_current", "Writers that there are.", float64(g.FloorCurrent), at...)
	out.gauge("hecate_pool_refill_demand", "Writers that refill still owes.", float64(g.Demand), at...)
	out.gauge("hecate_pool_dialing", "Connections being made.", float64(g.Dialing), at...)
	out.counter("hecate_pool_refill_tries_total", "Tries of refill.", float64(g.Tries), at...)
	out.counter("hecate_pool_refill_failures_total", "Tries of refill that failed.", float64(g.Failures), at...)
	out.gauge("hecate_pool_losses_unrestored", "Lost writers that were not restored yet.", float64(g.Losses), at...)
	out.gauge("hecate_pool_quarantined", "Endpoints in quarantine.", float64(g.Quarantined), at...)
	out.gauge("hecate_pool_outage", "1 while the only endpoint is retried in outage mode.", truth(g.Outage), at...)
	out.gauge("hecate_pool_group_sessions", "Sessions of the group.", float64(g.Sessions), at...)
	out.gauge("hecate_pool_ready", "1 when the group takes sessions.", truth(g.Ready), at...)
}

// writerMetrics sums over writers: a writer is no label, it comes and goes.
func writerMetrics(out sink, writers []pool.WriterSnapshot) {
	type sum struct{ frames, bytes, worst, drain float64 }
	groups := map[string]*sum{}
	for _, w := range writers {
		g := groups[w.Group]
		if g == nil {
			g = &sum{}
			groups[w.Group] = g
		}
		g.frames += float64(w.QueueFrames)
		g.bytes += float64(w.QueueBytes)
		g.worst = max(g.worst, w.RoundTrip.Seconds())
		g.drain = max(g.drain, w.DrainAge.Seconds())
	}
	for name, g := range groups {
		out.gauge("hecate_pool_queue_frames", "Frames in writers' queues.", g.frames, "group", name)
		out.gauge("hecate_pool_queue_bytes", "Bytes in writers' queues.", g.bytes, "group", name)
		out.gauge("hecate_pool_round_trip_seconds", "Smoothed round trip of the slowest writer.", g.worst, "group", name)
		out.gauge("hecate_pool_drain_age_seconds", "Age of the longest drain.", g.drain, "group", name)
	}
}

func generationMetrics(out sink, g pool.GenerationSnapshot) {
	out.gauge("hecate_pool_generation_active", "Active generation.", float64(g.Active))
	out.gauge("hecate_pool_generation_age_seconds", "Age of the active generation.", g.ActiveAge.Seconds())
	out.gauge("hecate_pool_generation_pending", "Generation in warm-up, 0 when there is none.", float64(g.Pending))
	out.gauge("hecate_pool_generation_pending_age_seconds", "Age of the generation in warm-up.", g.PendingAge.Seconds())
	out.gauge("hecate_pool_generation_writer_deficit", "Writers that the generation in warm-up still lacks.", float64(g.WriterDeficit))
	out.gauge("hecate_pool_generation_missing_groups", "Groups that the generation in warm-up still lacks.", float64(len(g.Missing)))
	out.gauge("hecate_pool_map_current", "1 when the active generation is of the desired map.", truth(g.MapCurrent))
	out.gauge("hecate_pool_orphans", "Living writers whose endpoint nobody wants.", float64(g.Orphans))
}
