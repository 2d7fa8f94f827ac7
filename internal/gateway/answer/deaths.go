package answer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"hecate/internal/stage"
	"hecate/swarm"
)

// suspicion is what is known of nodes that died while they computed the same
// input: if it is what killed them, then one of these rows did, in one of these
// layers.
type suspicion struct {
	rows    span
	layers  swarm.LayerRange
	nodes   int // how many died of it
	names   map[string]bool
	first   time.Time
	crowded bool // other answers were on one of them
	excused bool // others died as well that computed nothing of it
}

// span is positions from..to-1.
type span struct{ from, to int }

// nothing was under way.
var nothing = span{-1, -1}

func (s span) meets(o span) bool { return s.from < o.to && o.from < s.to }
func (s span) common(o span) span {
	return span{max(s.from, o.from), min(s.to, o.to)}
}

// Machines that lose their power together are not noticed together. A death that
// came so long before or after those of a suspicion may have the same cause.
const (
	sameBlow = time.Second
	newsTime = 500 * time.Millisecond
)

// bury counts a death: a process that ended, or that computes for ever. An answer
// that was alone with two dying nodes, at rows and layers that both had in common
// and nobody has ever computed, kills nodes. When others were there too, it is
// tried once more by itself (onTrial): a third death convicts it. When nodes died
// as well that computed nothing of it, the count begins anew, once.
func (a *Answer) bury(f *stageError, others int) error {
	if f.kind == Refused || f.rows.from < a.proven || errors.Is(f.err, ErrSilence) || errors.Is(f.err, errNodeDead) {
		return nil // no sign that the process ended at this very input
	}
	d := a.suspect(f.rows, a.grant.Route.Stages[f.stage].Layers)
	d.nodes++
	d.names[f.node] = true
	d.crowded = d.crowded || others > 0
	if d.nodes < 2 || d.nodes == 2 && d.crowded {
		return nil
	}
	if !d.excused && a.othersDied(d) {
		*d = suspicion{rows: d.rows, layers: d.layers, names: map[string]bool{}, first: time.Now(), excused: true}
		return nil
	}
	a.run.Poison.add(a.job)
	return fmt.Errorf("answer %s, position %d: %w; the last was %s: %w", a.job.ID, d.rows.from, ErrQueryOfDeath, f.node, f)
}

// suspect gives the suspicion that a death in these rows and layers adds to,
// narrowed to what all its deaths have in common.
func (a *Answer) suspect(rows span, layers swarm.LayerRange) *suspicion {
	for _, d := range a.suspicions {
		if d.rows.meets(rows) && d.layers.Overlaps(layers) {
			d.rows = d.rows.common(rows)
			d.layers, _ = d.layers.Clip(layers)
			return d
		}
	}
	d := &suspicion{rows: rows, layers: layers, names: map[string]bool{}, first: time.Now()}
	a.suspicions = append(a.suspicions, d)
	return d
}

// acquit takes out of the suspicions what a node has computed and lived.
func (a *Answer) acquit() {
	for _, l := range a.links {
		if l == nil {
			continue
		}
		a.suspicions = slices.DeleteFunc(a.suspicions, func(d *suspicion) bool { return d.survived(l.stage.Layers, l.held) })
	}
}

// survived notes that these layers were computed for all rows below held; true
// when nothing is left to suspect.
func (d *suspicion) survived(layers swarm.LayerRange, held int) bool {
	switch {
	case !d.layers.Overlaps(layers) || held <= d.rows.from:
	case held < d.rows.to && layers.Covers(d.layers):
		d.rows.from = held
	case held < d.rows.to:
	case layers.First <= d.layers.First:
		d.layers.First = layers.Last + 1
	case d.layers.Last <= layers.Last:
		d.layers.Last = layers.First - 1
	}
	return d.layers.First > d.layers.Last
}

// othersDied waits a moment for news of nodes that died at about the same time.
func (a *Answer) othersDied(d *suspicion) bool {
	since := d.first.Add(-sameBlow)
	for until := time.Now().Add(newsTime); ; {
		if a.company.otherDeaths(since, d.names) {
			return true
		}
		if !time.Now().Before(until) || a.pause() != nil {
			return false
		}
	}
}

// onTrial says that a step computes what two nodes died of.
func (a *Answer) onTrial(l *link, s stage.Step) bool {
	rows := span{s.Position, s.Position + s.Rows()}
	return slices.ContainsFunc(a.suspicions, func(d *suspicion) bool {
		return d.nodes >= 2 && d.rows.meets(rows) && d.layers.Overlaps(l.stage.Layers)
	})
}
