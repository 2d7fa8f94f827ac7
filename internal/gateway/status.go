package gateway

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"hecate/internal/control"
	"hecate/internal/gateway/openai"
	"hecate/internal/report"
	"hecate/swarm"
)

// showSwarm serves GET /v1/swarm.
func (g *Gateway) showSwarm(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, g.Status())
}

// showPool serves GET /v1/pool.
func (g *Gateway) showPool(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, g.cfg.Pool.Snapshot())
}

// healthz serves GET /healthz: this process answers.
func (g *Gateway) healthz(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, map[string]string{"status": "ok"})
}

// readyz serves GET /readyz: some model can be asked now.
func (g *Gateway) readyz(w http.ResponseWriter, _ *http.Request) error {
	missing := "no model is in the catalogue, and no engine serves one"
	if g.engines.Ready() {
		return writeJSON(w, map[string]string{"status": "ready"})
	}
	for _, m := range g.catalog.all() {
		if missing = g.missing(m); missing == "" {
			return writeJSON(w, map[string]string{"status": "ready"})
		}
	}
	return openai.Unavailable("not_ready", missing, dispatchRetry)
}

// look is serve for requests that generate nothing and are not counted.
func (g *Gateway) look(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil && r.Context().Err() == nil {
			faultOf(err).Write(w)
		}
	}
}

// Ready says that some model can be asked now.
func (g *Gateway) Ready() bool {
	for _, m := range g.catalog.all() {
		if g.missing(m) == "" {
			return true
		}
	}
	return false
}

// missing names what a model waits for, "" when a copy is ready: planned, held
// by its nodes' own word, and reachable.
func (g *Gateway) missing(m *Model) string {
	doc := g.plan.Load()
	if doc == nil {
		return "there is no plan yet: no node has joined"
	}
	view := g.cfg.Membership.View()
	pipelines := doc.Plan.PipelinesOf(m.Record.ID)
	if len(pipelines) == 0 {
		if offer := g.offer.Load(); offer != nil && g.assembles(m, offer.View(view)) {
			return "" // it is planned nowhere, and those that are to give it up go on serving it
		}
		return unplaced(doc.Plan, m.Record.ID)
	}
	var reasons []string
	for _, p := range pipelines {
		why := g.brokenBy(p, view)
		if why == "" {
			return ""
		}
		reasons = append(reasons, fmt.Sprintf("copy %d waits for %s", p.ID, why))
	}
	if g.assembles(m, view) {
		return "" // no copy is whole, but a chain across them is
	}
	return strings.Join(reasons, "; ")
}

// assembles says that every layer of the model has a holder that can be reached.
func (g *Gateway) assembles(m *Model, view *control.View) bool {
	covered := make([]bool, m.Record.Spec.Layers)
	for id, state := range view.Nodes {
		if state.Dead || !g.cfg.Pool.Ready(id).Ready {
			continue
		}
		for layer := range covered {
			covered[layer] = covered[layer] || state.HoldsLayer(m.Record.ID, "", layer)
		}
	}
	return !slices.Contains(covered, false)
}

func unplaced(p *swarm.Plan, model string) string {
	for _, u := range p.Unplaced {
		if u.Model == model {
			return fmt.Sprintf("it fits nowhere: %s (%d bytes are missing)", u.Reason, u.ShortfallBytes)
		}
	}
	return "it is not planned yet"
}

// brokenBy names the first stage that cannot serve.
func (g *Gateway) brokenBy(p swarm.Pipeline, view *control.View) string {
	for _, s := range p.Stages {
		state, known := view.Nodes[s.Node]
		switch {
		case !known || state.Dead:
			return fmt.Sprintf("%s, which does not live", s.Node)
		case !holdsAll(&state, p.Model, s.Layers):
			return fmt.Sprintf("%s, which is loading layers %s", s.Node, s.Layers)
		case !g.cfg.Pool.Ready(s.Node).Ready:
			return fmt.Sprintf("a connection to %s", s.Node)
		}
	}
	return ""
}

func holdsAll(n *swarm.NodeState, model string, r swarm.LayerRange) bool {
	for layer := r.First; layer <= r.Last; layer++ {
		if !n.HoldsLayer(model, "", layer) {
			return false
		}
	}
	return true
}

// Status is the swarm as it is now.
func (g *Gateway) Status() report.Status {
	view := g.cfg.Membership.View()
	doc := g.plan.Load()
	st := report.Status{Gateway: g.cfg.Name, Version: g.cfg.Version, Chaos: g.chaos.allowed, Nodes: []report.Node{}, Models: []report.Model{}, Answers: g.answers()}
	living := 0
	for i := range view.Members {
		if r := view.Members[i].Record; r != nil && r.Desired == control.DesiredRemoved {
			continue // it is no member; its record only refuses its key
		}
		n := g.nodeReport(&view.Members[i], doc)
		if n.Alive {
			living++
		}
		st.Nodes = append(st.Nodes, n)
		st.Why = append(st.Why, failuresOf(n)...)
	}
	for _, m := range g.catalog.all() {
		st.Models = append(st.Models, g.modelReport(m, doc, view, &st))
	}
	if doc != nil {
		st.Generation = doc.Generation
	}
	if living == 0 && (len(st.Models) > 0 || !g.engines.Ready()) {
		st.Why = append(st.Why, "no node lives")
	}
	st.State = stateOf(len(st.Why), living > 0 || g.engines.Ready())
	return st
}

// stateOf is healthy while nothing is wrong, and failed when nobody can answer.
func stateOf(wrong int, somebody bool) string {
	switch {
	case !somebody:
		return "failed"
	case wrong > 0:
		return "degraded"
	}
	return "healthy"
}

// Answering says that answers run.
func (g *Gateway) Answering() bool { return g.admission.Snapshot().Running > 0 }

func (g *Gateway) answers() report.Answers {
	q := g.admission.Snapshot()
	a := report.Answers{
		Running: q.Running, Queued: q.Queued, Refused: map[string]int64{},
		Finished: g.counts.finished.Load(), Left: g.counts.left.Load(), Lost: g.counts.lost.Load(),
		Rescues: map[string]int64{}, Midway: q.Midway, GaveWay: q.GaveWay,
	}
	for reason, n := range q.Refused {
		a.Refused[string(reason)] = n
	}
	a.QueueWait = report.Histogram{Bounds: q.Wait.Bounds, Counts: q.Wait.Counts, Sum: q.Wait.Sum.Seconds()}
	g.counts.mu.Lock()
	defer g.counts.mu.Unlock()
	a.Degraded = g.counts.degraded
	for k, n := range g.counts.rescues {
		a.Rescues[string(k)] = n
	}
	return a
}

func (g *Gateway) nodeReport(m *control.Member, doc *control.PlanDocument) report.Node {
	n := report.Node{ID: m.ID, Alive: m.Status.Living(), Reverse: g.reach.reversed(m.ID), Fragments: []swarm.Fragment{}}
	if r := m.Record; r != nil {
		n.Desired, n.Exactness, n.MemoryBudget = string(r.Desired), r.Exactness, r.Profile.MemoryBytes
		if host, err := os.Hostname(); err == nil && host == r.Host && n.Alive {
			n.PID = r.PID
		}
	}
	if h := m.Health; h != nil {
		n.LatencyMS, n.Load, n.Score = known(h.State.LatencyMS), known(h.State.Load), known(h.State.Score)
		n.MemoryUsed, n.TokensComputed, n.Sessions = h.MemoryUsed, h.TokensComputed, h.Sessions
		n.Cells, n.FreeCells = h.Cells, h.FreeCells
		for _, f := range h.Held {
			n.Fragments = append(n.Fragments, swarm.Fragment{Model: f.Model, Layers: f.Layers})
		}
		n.Loading, n.Received = loadingOf(h), receivedOf(h, doc)
	}
	n.RoundTripMS = known(g.dispatch.RoundTrip(m.ID))
	if doc != nil && n.Alive {
		n.IfItDies, n.Recovery = g.prospectsOf(doc, m.ID)
	}
	return n
}

func known(r swarm.Reading) *float64 {
	if !r.Known {
		return nil
	}
	return &r.Value
}

func (g *Gateway) modelReport(m *Model, doc *control.PlanDocument, view *control.View, st *report.Status) report.Model {
	r := report.Model{
		ID: m.Record.ID, Demo: m.Record.Demo, FallbackFor: m.Record.Spec.FallbackFor, Missing: g.missing(m), Layers: m.Record.Spec.Layers,
		ContextLength: m.Context(), Bytes: m.Record.Size, Created: m.Record.Created.Unix(), Pipelines: []report.Pipeline{},
		Expert: m.Record.Spec.Expert, SentBytes: g.sent(m.Record.Hash),
	}
	r.Ready = r.Missing == ""
	if !r.Ready && !noRoomFor(doc, &m.Record) {
		st.Why = append(st.Why, fmt.Sprintf("model %s: %s", m.Record.ID, r.Missing))
	}
	if doc == nil {
		return r
	}
	for _, p := range doc.Plan.PipelinesOf(m.Record.ID) {
		why := g.brokenBy(p, view)
		if why != "" && r.Ready {
			st.Why = append(st.Why, fmt.Sprintf("copy %d of %s waits for %s", p.ID, m.Record.ID, why))
		}
		r.Pipelines = append(r.Pipelines, report.Pipeline{ID: p.ID, Live: why == "", Stages: p.Stages})
	}
	for _, u := range doc.Plan.Unplaced {
		if u.Model == m.Record.ID && !m.Record.Spec.Expert {
			st.Why = append(st.Why, fmt.Sprintf("%s of %s found no room: %s", copies(u.Copies), u.Model, u.Reason))
		}
	}
	return r
}

func copies(n int) string {
	if n == 1 {
		return "1 copy"
	}
	return fmt.Sprintf("%d copies", n)
}

// Settled says that the model can be asked and that every planned copy lives.
func (g *Gateway) Settled() bool { return g.Ready() && g.Status().State == "healthy" }
