package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"hecate/internal/report"
)

// Screen is how a picture is drawn: what is chosen, and how much room there is.
type Screen struct {
	Width, Height int // cells
	Chosen        int // a node, by its place in NodeNames
	Now           time.Time
	Said          string // the outcome of the last command
	Dark          bool
}

// Draw fills the screen, no more than Height lines of Width cells. What has no
// room is left out from the bottom of each part.
func (s Screen) Draw(p *Picture) string {
	pen := newPen(s.Dark)
	if s.Width < 40 || s.Height < 10 {
		return "Make the window larger: 40 by 10 at least."
	}
	head := s.head(p, pen)
	foot := s.foot(pen)
	room := s.Height - len(head) - len(foot)
	var body []string
	switch {
	case len(p.Nodes) == 0 && !p.Connected:
		body = []string{"", pen.faint("  " + p.Trouble), "", pen.faint("  Is it running? `hecate up` starts a swarm on this machine;"), pen.faint("  --url names another one.")}
	case len(p.Nodes) == 0:
		body = []string{"", pen.faint("  No node has joined yet. `hecate token create` makes a token;"), pen.faint("  on the other machine: hecate node run --join TOKEN")}
	default:
		body = s.body(p, pen, room)
	}
	for len(body) < room {
		body = append(body, "")
	}
	lines := slices.Concat(head, body[:room], foot)
	for i := range lines {
		lines[i] = pen.fit(lines[i], s.Width)
	}
	return strings.Join(lines, "\n")
}

// head is the state in three lines.
func (s Screen) head(p *Picture, pen pen) []string {
	alive := 0
	for _, n := range p.Nodes {
		if n.Alive {
			alive++
		}
	}
	state := pen.state(p.Swarm.State)
	if !p.Connected {
		state = pen.bad("not connected")
	}
	title := fmt.Sprintf(" %s  %s  %d of %d nodes  plan %d  connections %d", pen.bold("HECATE"), state, alive, len(p.Nodes), p.Swarm.Generation, p.Pool.Generation)
	clock := s.Now.Format("15:04:05") + " "
	title += strings.Repeat(" ", max(1, s.Width-lipgloss.Width(title)-len(clock))) + pen.faint(clock)
	speed := fmt.Sprintf(" %6.0f tokens/s %s  first token %s  gap %s  running %d  waiting %d",
		p.Pulse.TokensPerSecond, pen.good(spark(p.History, s.sparkWidth())), recent(p.History, firstToken), recent(p.History, gap), p.Pulse.Running, p.Pulse.Queued)
	note := ""
	switch {
	case p.Trouble != "" && len(p.Nodes) > 0: // without nodes there is room for it below
		note = pen.bad(" " + p.Trouble)
	case p.Connected && len(p.Swarm.Why) > 0:
		note = pen.warn(" " + p.Swarm.Why[0])
	}
	return []string{title, speed, note}
}

func (s Screen) sparkWidth() int { return max(0, min(60, s.Width-74)) }

func firstToken(p report.Pulse) *float64 { return p.FirstTokenMS }
func gap(p report.Pulse) *float64        { return p.GapMS }

// recent is the newest of a number that not every second has.
func recent(history []report.Pulse, of func(report.Pulse) *float64) string {
	for i := len(history) - 1; i >= 0; i-- {
		if v := of(history[i]); v != nil {
			return duration(*v)
		}
	}
	return "-"
}

// foot is what can be done, and what became of it.
func (s Screen) foot(pen pen) []string {
	keys := " q quit   up, down choose a node   p pause it   r resume it"
	if s.Said != "" {
		keys = " " + s.Said
	}
	return []string{pen.faint(keys)}
}

// body is nodes, models, events, as far as there is room: nodes first, at least
// four lines for events.
func (s Screen) body(p *Picture, pen pen, room int) []string {
	nodes, models := s.nodes(p, pen), s.models(p, pen)
	left := room - min(4, len(p.Events)+1)
	nodes = shorten(nodes, max(3, left-min(len(models), left/2)), "nodes", pen)
	models = shorten(models, left-len(nodes), "lines", pen)
	events := []string{pen.bold(" EVENTS")}
	count := max(0, room-len(nodes)-len(models)-1)
	for _, e := range lastOf(p.Events, count) {
		events = append(events, fmt.Sprintf(" %s  %s", pen.faint(e.Time.Local().Format("15:04:05")), pen.level(e.Level, e.Text)))
	}
	if len(p.Events) == 0 {
		events = append(events, pen.faint(" nothing happened yet"))
	}
	return slices.Concat(nodes, models, events)
}

// shorten says how much is left out.
func shorten(lines []string, most int, what string, pen pen) []string {
	if len(lines) <= most {
		return lines
	}
	if most < 2 {
		return nil
	}
	return append(slices.Clone(lines[:most-1]), pen.faint(fmt.Sprintf(" ... and %d more %s", len(lines)-most+1, what)))
}

// nodes is a table with a line for each.
func (s Screen) nodes(p *Picture, pen pen) []string {
	bars := 6
	if s.Width >= 110 {
		bars = 14
	}
	names := p.NodeNames()
	wide := 8
	for _, name := range names {
		wide = min(24, max(wide, len(name)))
	}
	head := fmt.Sprintf("  %-*s %-8s %-*s %-*s %8s %7s  %s", wide, "NODE", "STATE", bars+5, "LOAD", bars+10, "MEMORY", "ROUND", "TOK/S", "IF IT DIES")
	lines := []string{pen.bold(head)}
	for i, name := range names {
		n := p.Nodes[name]
		mark := " "
		if i == s.Chosen {
			mark = ">"
		}
		line := fmt.Sprintf("%s %-*s %s %s %s %8s %7.0f  %s", mark, wide, clip(name, wide), pen.life(n, 8),
			bar(n.Load, bars)+share(n.Load), bar(part(n.MemoryUsed, n.MemoryBudget), bars)+fmt.Sprintf(" %9s", size(n.MemoryUsed)),
			roundTrip(n), n.TokensPerSecond, dies(n.IfItDies))
		if i == s.Chosen {
			line = pen.chosen(line)
		}
		lines = append(lines, line)
		lines = append(lines, transfers(n, pen)...)
	}
	return append(lines, "")
}

// models lists copies as their stages.
func (s Screen) models(p *Picture, pen pen) []string {
	lines := []string{pen.bold(" MODELS")}
	for _, name := range sortedModels(p.Models) {
		m := p.Models[name]
		state := pen.good("ready")
		if !m.Ready {
			state = pen.bad("not ready: " + m.Missing)
		}
		lines = append(lines, fmt.Sprintf(" %s  %d layers, %s  %s", m.ID, m.Layers, size(m.Bytes), state))
		for _, c := range m.Pipelines {
			life := pen.good("live  ")
			if !c.Live {
				life = pen.bad("broken")
			}
			lines = append(lines, fmt.Sprintf("   copy %d  %s  %s%s", c.ID, life, lanes(c, m.Layers), pen.faint(inUse(p.Flows, m.ID, c))))
		}
	}
	return append(lines, "")
}
