package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"hecate/internal/control"
	"hecate/internal/event"
	"hecate/internal/report"
	"hecate/pool"
)

const (
	// beat is how often the picture is drawn while somebody watches.
	beat = time.Second
	// hurry is how soon it is drawn anew when something happened.
	hurry = 60 * time.Millisecond
)

// painter draws the picture that pages and terminals watch. It belongs to the
// goroutine of paint.
type painter struct {
	gateway *Gateway
	started time.Time
	pulse   report.Pulse
	pace    map[string]*pace
}

// pace turns a node's counter of tokens into a speed.
type pace struct {
	tokens int64
	heard  time.Time
	speed  float64
}

// paint keeps pulse and picture until ctx ends.
func (g *Gateway) paint(ctx context.Context) {
	p := &painter{gateway: g, started: time.Now(), pace: map[string]*pace{}}
	news := g.events.Subscribe(g.events.Last())
	defer news.Close()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	rush := time.NewTimer(beat)
	rush.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-news.Bell():
			if events, _ := news.Take(); slices.ContainsFunc(events, worthHurry) {
				rush.Reset(hurry)
			}
			continue
		case now := <-tick.C:
			q := g.admission.Snapshot()
			p.pulse = g.pulse.Beat(now.Sub(last), q.Running, q.Queued)
			last = now
		case <-rush.C:
		case <-g.watched: // the first watcher should not wait for a beat
		}
		if g.feed.Watchers() > 0 {
			g.feed.Set(p.picture())
		}
	}
}

func worthHurry(e event.Event) bool { return e.Level() >= slog.LevelInfo }

// picture is everything that is to be seen now, by part.
func (p *painter) picture() map[string]json.RawMessage {
	g, out := p.gateway, map[string]json.RawMessage{}
	draw := func(name string, v any) {
		b, err := json.Marshal(v)
		if err != nil {
			panic("BUG: a part that cannot be written: " + err.Error())
		}
		out[name] = b
	}
	st := g.Status()
	draw("swarm", report.Swarm{
		State: st.State, Why: st.Why, Gateway: st.Gateway, Version: st.Version, Generation: st.Generation,
		Chaos: st.Chaos, Links: st.Chaos && g.cfg.Links != nil, Keys: g.keys != nil, Started: p.started,
	})
	draw("answers", st.Answers)
	draw("flows", p.flows())
	draw("pool", livePool(g.cfg.Pool.Snapshot()))
	draw("pulse", p.pulse)
	view := g.cfg.Membership.View()
	maps.DeleteFunc(p.pace, func(id string, _ *pace) bool { return view.Member(id) == nil })
	for i := range st.Nodes {
		draw("node/"+st.Nodes[i].ID, p.node(&st.Nodes[i], view.Member(st.Nodes[i].ID)))
	}
	for _, m := range st.Models {
		draw("model/"+m.ID, m)
	}
	return out
}

// node rounds what trembles, so that a calm node is no news.
func (p *painter) node(n *report.Node, m *control.Member) report.LiveNode {
	out := report.LiveNode{Node: *n, Link: p.gateway.bent.of(n.ID)}
	out.LatencyMS, out.RoundTripMS, out.Load = rough(n.LatencyMS, 10), rough(n.RoundTripMS, 10), rough(n.Load, 100)
	out.Score = nil
	if m == nil {
		return out
	}
	out.Status, out.Since = m.Status.String(), m.Since.UTC().Round(time.Second)
	if m.Health == nil {
		return out
	}
	out.TokensPerSecond = p.paceOf(m)
	return out
}

func rough(v *float64, steps float64) *float64 {
	if v == nil {
		return nil
	}
	r := math.Round(*v*steps) / steps
	if math.IsInf(r, 0) {
		return v // as large as a number can be: nodes may say so
	}
	return &r
}

// paceOf is a node's speed between its last two reports.
func (p *painter) paceOf(m *control.Member) float64 {
	is, tokens := p.pace[m.ID], m.Health.TokensComputed
	switch {
	case is == nil || tokens < is.tokens: // new, or started anew
		p.pace[m.ID] = &pace{tokens: tokens, heard: m.Heard}
		return 0
	case m.Heard.Sub(is.heard) < beat/2: // too little to divide by
		return is.speed
	}
	speed := float64(tokens-is.tokens) / m.Heard.Sub(is.heard).Seconds()
	p.pace[m.ID] = &pace{tokens: tokens, heard: m.Heard, speed: math.Round(speed)}
	return math.Round(speed)
}

func (p *painter) flows() []report.Flow {
	out := []report.Flow{}
	counted := p.gateway.traffic.look()
	for _, key := range slices.Sorted(maps.Keys(counted)) {
		f := report.Flow{Model: counted[key].model, Count: counted[key].count}
		for _, s := range counted[key].stages {
			f.Stages = append(f.Stages, report.FlowStage{Node: s.Node, First: s.Layers.First, Last: s.Layers.Last})
		}
		out = append(out, f)
	}
	return out
}

// livePool is a pool in short.
func livePool(s pool.Snapshot) report.LivePool {
	out := report.LivePool{
		Generation: s.Generation.Active, Activated: s.At.Add(-s.Generation.ActiveAge).UTC().Round(time.Second), Pending: s.Generation.Pending,
		MapCurrent: s.Generation.MapCurrent, WriterDeficit: s.Generation.WriterDeficit, Groups: []report.LiveGroup{},
		Sessions: s.SessionsOpen, Losses: failures(s.WriterLosses), Drops: sum(s.Drops), Buffered: s.BufferedBytes,
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		out.Groups = append(out.Groups, report.LiveGroup{
			Node: g.Group, Writers: g.FloorCurrent, Floor: g.FloorTarget, Draining: int(g.Contours["draining"]),
			Dialing: g.Dialing, Sessions: g.Sessions, Ready: g.Ready, Outage: g.Outage,
		})
	}
	return out
}

func sum(counts map[string]uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// failures sums what ended connections against our will.
func failures(losses map[string]uint64) uint64 {
	n := sum(losses)
	for _, ours := range []string{"retired", "shutdown", "discarded", "idle_close"} {
		n -= losses[ours]
	}
	return n
}

// logEvents writes every event to the log until ctx ends.
func (g *Gateway) logEvents(ctx context.Context) {
	sub := g.events.Subscribe(0)
	defer sub.Close()
	sub.Follow(ctx, func(e event.Event) {
		about := e.About()
		var more []any
		for _, field := range [][2]string{{"node", about.Node}, {"model", about.Model}, {"answer", about.Job}} {
			if field[1] != "" {
				more = append(more, field[0], field[1])
			}
		}
		if detail, err := json.Marshal(e.Fact); err == nil && e.Level() >= slog.LevelWarn && len(detail) > len("{}") {
			more = append(more, "detail", string(detail))
		}
		g.log.Log(ctx, e.Level(), e.String(), append(more, "event", string(e.Kind()))...)
	})
}
