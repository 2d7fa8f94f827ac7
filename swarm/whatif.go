package swarm

import (
	"fmt"
	"slices"
)

// An Outcome is what a death would mean for one model.
type Outcome string

const (
	Unaffected Outcome = "unaffected" // none of the dead serves in a pipeline of the model
	ByCopy     Outcome = "copy"       // another whole copy takes over
	BySplice   Outcome = "splice"     // every lost layer has another holder
	ByFallback Outcome = "fallback"   // a declared fallback model stands in, labelled
	Down       Outcome = "down"       // nothing may stand in
)

// An Effect is what a death would mean for one model, and how close to the
// edge it leaves it.
type Effect struct {
	Model    string        `json:"model"`
	Outcome  Outcome       `json:"outcome"`
	Broken   []int         `json:"broken,omitempty"`   // pipelines that would break
	By       []Replacement `json:"by,omitempty"`       // who holds the lost layers instead, for a splice
	Fallback string        `json:"fallback,omitempty"` // the model that stands in
	Lost     []LayerRange  `json:"lost,omitempty"`     // layers left without any holder
	Holders  int           `json:"holders"`            // the fewest living holders any layer is left with
}

func (e Effect) String() string {
	switch e.Outcome {
	case ByFallback:
		return fmt.Sprintf("%s: %s %s", e.Model, e.Outcome, e.Fallback)
	case BySplice:
		return fmt.Sprintf("%s: %s %v", e.Model, e.Outcome, e.By)
	}
	return fmt.Sprintf("%s: %s", e.Model, e.Outcome)
}

// WhatIf says, per model that has a copy, what the death of these nodes, all
// at once, would mean if every other node lived. An unknown node is an error.
func (p *Plan) WhatIf(nodes ...string) ([]Effect, error) {
	dead := map[string]bool{}
	for _, id := range nodes {
		if _, ok := p.Node(id); !ok {
			return nil, fmt.Errorf("what if: unknown node %q: %w", id, ErrInvalid)
		}
		dead[id] = true
	}
	var out []Effect
	for i := range p.Models {
		if len(p.PipelinesOf(p.Models[i].ID)) > 0 {
			out = append(out, p.effect(&p.Models[i], dead))
		}
	}
	return out, nil
}

func (p *Plan) effect(m *ModelSpec, dead map[string]bool) Effect {
	e := Effect{Model: m.ID}
	var first *Pipeline // the copy that a splice would mend
	pls := p.PipelinesOf(m.ID)
	for i := range pls {
		if pls[i].uses(dead) {
			e.Broken = append(e.Broken, pls[i].ID)
			if first == nil {
				first = &pls[i]
			}
		}
	}
	e.Holders, e.Lost = p.survivors(m, dead)
	switch {
	case len(e.Broken) == 0:
		e.Outcome = Unaffected
	case len(e.Broken) < len(pls):
		e.Outcome = ByCopy
	case len(e.Lost) == 0:
		e.Outcome, e.By = BySplice, p.splices(first, dead)
	default:
		e.Outcome = Down
		if f := p.livingFallback(m.ID, dead); f != "" {
			e.Outcome, e.Fallback = ByFallback, f
		}
	}
	return e
}

func (pl *Pipeline) uses(nodes map[string]bool) bool {
	return slices.ContainsFunc(pl.Stages, func(s Stage) bool { return nodes[s.Node] })
}

// survivors counts the living holders of the barest layer and lists the layers
// with none.
func (p *Plan) survivors(m *ModelSpec, dead map[string]bool) (fewest int, lost []LayerRange) {
	fewest = len(p.Nodes)
	for l := range m.Layers {
		n := 0
		for _, id := range p.Redundancy[m.ID][l] {
			if !dead[id] {
				n++
			}
		}
		fewest = min(fewest, n)
		if n == 0 {
			lost = append(lost, LayerRange{l, l})
		}
	}
	return fewest, mergeRanges(lost)
}

// splices names, for the stages a pipeline would lose, a living holder of each
// layer: the one that held the layer before it, if it can go on, else the
// first by id. Which one a real splice takes depends on telemetry.
func (p *Plan) splices(pl *Pipeline, dead map[string]bool) []Replacement {
	var out []Replacement
	for _, st := range pl.Stages {
		if !dead[st.Node] {
			continue
		}
		for l := st.Layers.First; l <= st.Layers.Last; l++ {
			alive := slices.DeleteFunc(slices.Clone(p.Redundancy[pl.Model][l]), func(id string) bool { return dead[id] })
			if n := len(out); n > 0 && out[n-1].Layers.Last == l-1 && slices.Contains(alive, out[n-1].By) {
				out[n-1].Layers.Last = l
				continue
			}
			out = append(out, Replacement{By: alive[0], Layers: LayerRange{l, l}})
		}
	}
	return out
}

// livingFallback is the first model, by id, that is declared to stand in for
// this one and keeps a whole copy.
func (p *Plan) livingFallback(model string, dead map[string]bool) string {
	for i := range p.Models {
		if p.Models[i].FallbackFor != model {
			continue
		}
		for _, pl := range p.PipelinesOf(p.Models[i].ID) {
			if !pl.uses(dead) {
				return p.Models[i].ID
			}
		}
	}
	return ""
}
