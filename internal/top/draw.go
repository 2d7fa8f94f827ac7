package top

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"hecate/internal/report"
	"hecate/swarm"
)

// pen colours words. States differ by their words too, so that nothing is lost
// without colours.
type pen struct{ green, yellow, red, grey lipgloss.Style }

func newPen(dark bool) pen {
	pick := lipgloss.LightDark(dark)
	ink := func(light, dark string) lipgloss.Style {
		return lipgloss.NewStyle().Foreground(pick(lipgloss.Color(light), lipgloss.Color(dark)))
	}
	return pen{ink("#116329", "#7ee787"), ink("#8a5a00", "#e3b341"), ink("#b3261e", "#ff8a80"), ink("#57606a", "#8b949e")}
}

func (pen) bold(s string) string    { return lipgloss.NewStyle().Bold(true).Render(s) }
func (pen) chosen(s string) string  { return lipgloss.NewStyle().Bold(true).Render(s) }
func (p pen) faint(s string) string { return p.grey.Render(s) }
func (p pen) good(s string) string  { return p.green.Render(s) }
func (p pen) warn(s string) string  { return p.yellow.Render(s) }
func (p pen) bad(s string) string   { return p.red.Render(s) }

func (p pen) state(s string) string {
	switch s {
	case "healthy":
		return p.good(s)
	case "degraded":
		return p.warn(s)
	}
	return p.bad(s)
}

func (p pen) level(level, text string) string {
	switch level {
	case "warn":
		return p.warn(text)
	case "error":
		return p.bad(text)
	}
	return text
}

// life is a node's state, padded to so many cells.
func (p pen) life(n report.LiveNode, wide int) string {
	word, ink := n.Status, p.good
	switch {
	case !n.Alive:
		ink = p.bad
	case n.Desired != "" && n.Desired != "active":
		word, ink = n.Desired, p.warn
	case n.Status == "suspect":
		ink = p.warn
	}
	return ink(fmt.Sprintf("%-*s", wide, clip(word, wide)))
}

// fit cuts a line to a width; colours take no room.
func (pen) fit(line string, width int) string { return ansi.Truncate(line, width, "") }

// clip cuts a word, and shows that it did.
func clip(s string, most int) string {
	if len([]rune(s)) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "~"
}

// bar shows a share of 1; nil is unknown.
func bar(v *float64, wide int) string {
	if v == nil {
		return strings.Repeat(" ", wide)
	}
	full := int(min(max(*v, 0), 1)*float64(wide) + 0.5)
	return strings.Repeat("█", full) + strings.Repeat("░", wide-full)
}

func share(v *float64) string {
	if v == nil {
		return "    -"
	}
	return fmt.Sprintf("%4.0f%%", 100**v)
}

func part(of, whole int64) *float64 {
	if whole <= 0 {
		return nil
	}
	v := float64(of) / float64(whole)
	return &v
}

// size is bytes for people.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n), 0
	for v >= 1000 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

// duration is milliseconds for people.
func duration(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}

func roundTrip(n report.LiveNode) string {
	if n.RoundTripMS == nil {
		return "-"
	}
	return duration(*n.RoundTripMS)
}

// dies is what a node's death would mean; with a single model, without its name.
func dies(fates map[string]string) string {
	if len(fates) == 0 {
		return "-"
	}
	var out []string
	for _, model := range slices.Sorted(maps.Keys(fates)) {
		if len(fates) == 1 {
			return fates[model]
		}
		out = append(out, fates[model]+" "+model)
	}
	return strings.Join(out, ", ")
}

// transfers are a node's weights on their way, with a bar each.
func transfers(n report.LiveNode, pen pen) (lines []string) {
	for _, t := range n.Loading {
		what := fmt.Sprintf("%s %d-%d", t.Model, t.Layers.First, t.Layers.Last)
		if t.Error != "" {
			lines = append(lines, pen.bad(fmt.Sprintf("    %s  %s: %s", t.Phase, what, t.Error)))
			continue
		}
		lines = append(lines, pen.faint(fmt.Sprintf("    %-8s %s  %s of %s  %s", t.Phase, bar(part(t.Done, t.Total), 20), size(t.Done), size(t.Total), what)))
	}
	return lines
}

// lanes shows a copy's stages, as wide as their layers.
func lanes(c report.Pipeline, layers int) string {
	const wide = 36
	var out strings.Builder
	for _, s := range c.Stages {
		cells := max(1, (s.Layers.Last-s.Layers.First+1)*wide/max(1, layers))
		label := clip(fmt.Sprintf("%s %d-%d", s.Node, s.Layers.First, s.Layers.Last), max(cells, 10))
		out.WriteString("[" + label + strings.Repeat(" ", max(0, cells-len([]rune(label)))) + "]")
	}
	return out.String()
}

// inUse says how many answers run over just this copy.
func inUse(flows []report.Flow, model string, c report.Pipeline) string {
	for _, f := range flows {
		same := f.Model == model && slices.EqualFunc(f.Stages, c.Stages, func(a report.FlowStage, b swarm.Stage) bool {
			return a.Node == b.Node && a.First == b.Layers.First && a.Last == b.Layers.Last
		})
		if same && f.Count > 0 {
			return fmt.Sprintf("  %d running", f.Count)
		}
	}
	return ""
}

// spark draws tokens per second, the newest at the right.
func spark(history []report.Pulse, wide int) string {
	steps := []rune("▁▂▃▄▅▆▇█")
	shown := lastOf(history, wide)
	most := 1.0
	for _, p := range shown {
		most = max(most, p.TokensPerSecond)
	}
	var out strings.Builder
	for _, p := range shown {
		out.WriteRune(steps[int(p.TokensPerSecond/most*float64(len(steps)-1)+0.5)])
	}
	return strings.Repeat(" ", wide-len(shown)) + out.String()
}

func sortedModels(m map[string]report.Model) []string { return slices.Sorted(maps.Keys(m)) }
