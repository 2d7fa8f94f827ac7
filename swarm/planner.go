package swarm

import (
	"fmt"
	"slices"
	"sort"
)

const (
	// DefaultCopies is how many copies of a base model are planned when nobody
	// says: with two, any one node may die.
	DefaultCopies = 2

	// DefaultHeadroomPercent of a node's budget stays free, for activations
	// and work memory.
	DefaultHeadroomPercent = 5
)

// A Planner turns profiles and models into a plan. The zero value plans two
// copies of every base model and one of every expert, and leaves 5 % of each
// budget free. Planning is a function: the same profiles and models in any
// order, with the same previous plan, give the same plan.
type Planner struct {
	// Copies is how many copies of a base model are planned whose spec does
	// not say; 0 means DefaultCopies. Experts get one.
	Copies int

	// HeadroomPercent of each budget stays free, 0..99; 0 means
	// DefaultHeadroomPercent, a negative value none.
	HeadroomPercent int

	// HeadroomBytes stay free at least, whatever the percentage; >= 0.
	HeadroomBytes int64

	// Weights price latency, capacity and hops; nil means DefaultWeights.
	Weights *Weights
}

// Validate checks the planner's own settings.
func (pl Planner) Validate() error {
	switch {
	case pl.Copies < 0:
		return fmt.Errorf("planner: %d copies: %w", pl.Copies, ErrInvalid)
	case pl.HeadroomPercent > 99:
		return fmt.Errorf("planner: headroom of %d percent leaves nothing: %w", pl.HeadroomPercent, ErrInvalid)
	case pl.HeadroomBytes < 0:
		return fmt.Errorf("planner: headroom of %d bytes is negative: %w", pl.HeadroomBytes, ErrInvalid)
	}
	return pl.weights().Validate()
}

func (pl Planner) weights() Weights {
	if pl.Weights == nil {
		return DefaultWeights()
	}
	return *pl.Weights
}

// headroom is what stays free on a node of that budget, in bytes.
func (pl Planner) headroom(budget int64) int64 {
	percent := int64(pl.HeadroomPercent)
	if percent == 0 {
		percent = DefaultHeadroomPercent
	}
	var bytes int64
	if percent > 0 {
		bytes = scale(budget, percent, 100)
		if budget > 0 && scale(bytes, 100, percent) < budget {
			bytes++ // round up: the promise is "at least"
		}
	}
	return min(budget, max(bytes, pl.HeadroomBytes))
}

// copiesOf is how many copies of a model are wanted.
func (pl Planner) copiesOf(m ModelSpec) int {
	switch {
	case m.Copies > 0:
		return m.Copies
	case m.Expert:
		return 1
	case pl.Copies > 0:
		return pl.Copies
	}
	return DefaultCopies
}

// Plan places the models on the nodes.
//
// Base models come first, higher Priority before lower, then those that the
// previous plan serves, so that a newcomer takes nobody's place who is as
// important, then the larger; experts follow in what is left; warm spares take
// the rest. What the previous
// plan (nil: none) placed is kept where the result is as good: it survives as
// much, has as few stages, and its slowest node, hop included, is at most a
// tenth slower.
//
// Bad input is an error that names what is wrong. A model that finds no room
// is no error: the plan lists it in Unplaced, and Validate says so.
func (pl Planner) Plan(nodes []NodeProfile, models []ModelSpec, previous *Plan) (*Plan, error) {
	if err := pl.Validate(); err != nil {
		return nil, err
	}
	if err := checkProfiles(nodes); err != nil {
		return nil, fmt.Errorf("planning: %w", err)
	}
	if err := checkModels(models); err != nil {
		return nil, fmt.Errorf("planning: %w", err)
	}
	w := pl.begin(nodes, models, previous)
	best := w.deal(nil)
	if previous != nil {
		best = w.settle(best, previous)
	}
	return w.write(best, previous), nil
}

// A work is one planning in progress.
type work struct {
	*desk
	planner Planner
	specs   []ModelSpec // in the order of placing, copies resolved
	sheets  []*sheet
}

func (pl Planner) begin(nodes []NodeProfile, models []ModelSpec, previous *Plan) *work {
	w := &work{planner: pl}
	w.desk = newDesk(nodes, pl.headroom, pl.weights())
	w.specs = slices.Clone(models)
	for i := range w.specs {
		w.specs[i].Copies = pl.copiesOf(w.specs[i])
	}
	sort.Slice(w.specs, func(i, j int) bool {
		a, b := &w.specs[i], &w.specs[j]
		if x, y := previous.serves(a), previous.serves(b); x != y && !a.Expert && !b.Expert && a.Priority == b.Priority {
			return x
		}
		return placedBefore(a, b)
	})
	for i := range w.specs {
		w.sheets = append(w.sheets, newSheet(&w.specs[i]))
	}
	return w
}

// serves reports whether the plan (nil: none) has a copy of the model as it is now.
func (p *Plan) serves(m *ModelSpec) bool {
	if p == nil {
		return false
	}
	old, ok := p.Model(m.ID)
	return ok && old.Layers == m.Layers && len(p.PipelinesOf(m.ID)) > 0
}

// placedBefore is the order in which models get their memory, before anything is
// placed.
func placedBefore(a, b *ModelSpec) bool {
	switch {
	case a.Expert != b.Expert:
		return b.Expert
	case a.Priority != b.Priority:
		return a.Priority > b.Priority
	}
	if x, y := a.TotalBytes(), b.TotalBytes(); x != y && !a.Expert {
		return x > y
	}
	return a.ID < b.ID
}

// A placing is where every model of a work stands, and how good that is.
type placing struct {
	layouts []layout // by position in work.specs
	merits  []merit
}

// keeps reports whether a is as good as b, model by model.
func (w *work) keeps(a, b placing) bool {
	for i := range a.merits {
		if !w.asGood(a.merits[i], b.merits[i]) {
			return false
		}
	}
	return true
}

// clear empties the desk.
func (w *work) clear() {
	for i := range w.seats {
		w.seats[i].free, w.seats[i].busy = w.seats[i].usable, 0
	}
}

// deal places every model. When a base model gets nothing while one that is
// no more important has spare copies, a copy is given up for it: two models
// served are worth more than one served twice.
func (w *work) deal(previous *Plan) placing {
	targets := make([]int, len(w.specs))
	for i, m := range w.specs {
		targets[i] = m.Copies
	}
	first := w.dealTo(targets, previous)
	for p := first; ; {
		hungry := slices.IndexFunc(p.layouts, func(l layout) bool { return len(l) == 0 })
		if hungry < 0 || w.specs[hungry].Expert {
			return p
		}
		giver := -1
		for i, m := range w.specs {
			if !m.Expert && m.Priority <= w.specs[hungry].Priority && len(p.layouts[i]) > 1 {
				giver = i
			}
		}
		if giver < 0 {
			return first
		}
		targets[giver] = len(p.layouts[giver]) - 1
		p = w.dealTo(targets, previous)
	}
}

func (w *work) dealTo(targets []int, previous *Plan) placing {
	w.clear()
	var p placing
	for i := range w.specs {
		d := w.dealer(i, previous)
		p.add(d, d.place(targets[i], d.chainsOf(previous)))
	}
	return p
}

func (w *work) dealer(i int, previous *Plan) *dealer {
	d := &dealer{desk: w.desk, s: w.sheets[i]}
	if previous == nil {
		return d
	}
	if old, ok := previous.Model(d.s.spec.ID); ok && old.Layers == d.s.layers {
		d.held = newHoldings(d.desk, previous, d.s.spec.ID)
	} else {
		d.held = &holdings{}
	}
	return d
}

// add judges a layout, books it and appends it.
func (p *placing) add(d *dealer, l layout) {
	d.sortLayout(d.s, l)
	p.layouts = append(p.layouts, l)
	p.merits = append(p.merits, d.merit(d.s, l))
	d.take(d.s, l, 1)
}
