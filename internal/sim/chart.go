package sim

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// A Chart compares policies by a few measures side by side: one row of bars
// per policy, one panel per measure.
type Chart struct {
	Title, Note string
	Rows        []string
	Panels      []Panel
}

// A Panel is one measure, a value per row.
type Panel struct {
	Title  string
	Unit   string
	Values []float64 // >= 0
	Mark   float64   // a value worth a line, 0 for none
}

// Comparison is the chart of how evenly policies load the nodes and how long
// the slowest hundredth of requests takes.
func Comparison(title, note string, results []Result) Chart {
	c := Chart{Title: title, Note: note, Panels: []Panel{
		{Title: "hottest node's load over the mean; dashed: 1.3", Mark: 1.3},
		{Title: "p99 latency, seconds", Unit: " s"},
	}}
	for _, r := range results {
		c.Rows = append(c.Rows, r.Policy)
		c.Panels[0].Values = append(c.Panels[0].Values, r.Load.MaxOverMean)
		c.Panels[1].Values = append(c.Panels[1].Values, r.Latency.P99/1000)
	}
	return c
}

// Measures of the drawing, in pixels.
const (
	chartMargin = 20
	chartHead   = 84
	chartLabels = 110 // width of the policies' names
	chartBar    = 260 // width of the longest bar
	chartValue  = 70  // room for the number behind it
	chartRow    = 30
	chartFont   = "font-family=\"system-ui, sans-serif\""
)

// The colours are told apart on white and on black, and follow the reader's
// scheme.
const chartStyle = `<style>
text { fill: #24292f } .quiet { fill: #57606a } .ours { fill: #0969da } .bar { fill: #afb8c1 } .mark { stroke: #cf222e } .ground { fill: #ffffff }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .quiet { fill: #9198a1 } .ours { fill: #4493f8 } .bar { fill: #656c76 } .ground { fill: #0d1117 } }
</style>`

// WriteSVG draws the chart. The rows of swarm's own adaptive policies stand out.
func (c *Chart) WriteSVG(w io.Writer) error {
	panel := chartBar + chartValue
	width := 2*chartMargin + chartLabels + len(c.Panels)*(panel+chartMargin)
	height := chartHead + len(c.Rows)*chartRow + chartMargin
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" %s font-size=\"13\">\n",
		width, height, width, height, chartFont)
	fmt.Fprintf(&b, "<title>%s</title>\n%s\n<rect class=\"ground\" width=\"100%%\" height=\"100%%\"/>\n", html.EscapeString(c.Title), chartStyle)
	text(&b, chartMargin, 28, "", "start", 16, c.Title)
	text(&b, chartMargin, 48, "quiet", "start", 12, c.Note)
	for i, name := range c.Rows {
		text(&b, chartMargin+chartLabels-10, chartHead+i*chartRow+16, "", "end", 13, name)
	}
	for i := range c.Panels {
		c.panel(&b, &c.Panels[i], chartMargin+chartLabels+i*(panel+chartMargin))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Chart) panel(b *strings.Builder, p *Panel, x int) {
	text(b, x, chartHead-12, "quiet", "start", 12, p.Title)
	most := p.Mark
	for _, v := range p.Values {
		most = max(most, v)
	}
	if most == 0 {
		most = 1
	}
	scale := chartBar / most
	for i, v := range p.Values {
		class, y := "bar", chartHead+i*chartRow
		if ours(c.Rows[i]) {
			class = "ours"
		}
		fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"20\" rx=\"2\"/>\n", class, x, y, max(1, v*scale))
		text(b, x+int(v*scale)+8, y+15, "", "start", 12, fmt.Sprintf("%.2f%s", v, p.Unit))
	}
	if p.Mark > 0 {
		at := float64(x) + p.Mark*scale
		fmt.Fprintf(b, "<line class=\"mark\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke-dasharray=\"3 3\"/>\n",
			at, at, chartHead-4, chartHead+len(c.Rows)*chartRow-4)
	}
}

// ours tells swarm's adaptive policies from those that they are compared with.
func ours(policy string) bool { return policy == "adaptive" || policy == "two-choice" }

func text(b *strings.Builder, x, y int, class, anchor string, size int, s string) {
	if class != "" {
		class = fmt.Sprintf(" class=\"%s\"", class)
	}
	fmt.Fprintf(b, "<text%s x=\"%d\" y=\"%d\" text-anchor=\"%s\" font-size=\"%d\">%s</text>\n", class, x, y, anchor, size, html.EscapeString(s))
}
