package swarm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// An Explanation is everything that Choose weighed for one request.
type Explanation struct {
	Model        string      `json:"model"`
	Window       LayerRange  `json:"window"`
	PromptTokens int         `json:"prompt_tokens"`
	OutputTokens int         `json:"output_tokens"` // expected
	Explores     bool        `json:"explores"`      // this request may find out about a node
	Candidates   []Candidate `json:"candidates"`    // the chosen one first, then by price, then those that cannot be used
	Error        string      `json:"error,omitempty"`
}

// A Candidate is one copy, or the best assembled chain, with its price taken
// apart and why it won or lost.
type Candidate struct {
	PipelineID int          `json:"pipeline_id"` // -1 for the assembled chain
	Assembled  bool         `json:"assembled,omitempty"`
	Usable     bool         `json:"usable"`
	Chosen     bool         `json:"chosen"`
	Cost       Cost         `json:"cost"`
	Terms      Terms        `json:"terms"` // over all stages; they add up to Cost
	Stages     []StagePrice `json:"stages"`
	Verdict    string       `json:"verdict"`
}

// A StagePrice is one stage's part of a candidate's price.
type StagePrice struct {
	Node   string     `json:"node"`
	Layers LayerRange `json:"layers"`
	Cost   Cost       `json:"cost"`
	Terms  Terms      `json:"terms"`
}

// Explain answers as Choose would, and says why: every copy of the model with
// every term, and the best assembled chain where the policy looks for one.
func (r *Router) Explain(model string, req AdaptiveRequest, policy Policy) (Explanation, error) {
	chosen, chooseErr := r.Choose(model, req, policy)
	p, m, err := r.pricing(model, req, policy)
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{Model: model, Window: p.window, PromptTokens: req.PromptTokens,
		OutputTokens: p.req.OutputTokens, Explores: p.explore}
	if chooseErr != nil {
		e.Error = chooseErr.Error()
	}
	for i := range m.pipes {
		e.Candidates = append(e.Candidates, p.explainCopy(m, i))
	}
	if c, ok := p.explainChain(); ok {
		e.Candidates = append(e.Candidates, c)
	}
	for i := range e.Candidates {
		c := &e.Candidates[i]
		c.Chosen = chooseErr == nil && c.PipelineID == chosen.PipelineID && c.Assembled == chosen.Assembled
	}
	slices.SortStableFunc(e.Candidates, compareCandidates)
	for i := range e.Candidates {
		if e.Candidates[i].Usable {
			e.Candidates[i].Verdict = p.verdict(&e.Candidates[i], &e.Candidates[0])
		}
	}
	return e, nil
}

func compareCandidates(a, b Candidate) int {
	first := func(x, y bool) int {
		switch {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	}
	return cmp.Or(first(a.Chosen, b.Chosen), first(a.Usable, b.Usable), cmp.Compare(a.Cost, b.Cost))
}

// explainCopy takes the price of one copy apart.
func (p *pricing) explainCopy(m *modelCopies, i int) Candidate {
	c := p.candidate(m, i, Infinite)
	out := Candidate{PipelineID: m.pipes[i].ID, Usable: c.obstacle == noObstacle}
	if !out.Usable {
		rejection := p.rejection(m, &c)
		out.Verdict = strings.TrimSpace(rejection.Node + " " + rejection.Reason)
	}
	for s, stage := range m.pipes[i].Stages {
		if layers, ok := stage.Layers.Clip(p.window); ok {
			out.add(p.explainStage(m.nodes[i][s], layers))
		}
	}
	return out
}

// explainChain takes the best assembled chain apart.
func (p *pricing) explainChain() (Candidate, bool) {
	if p.policy.Assemble == AssembleNever || !p.window.Stated() {
		return Candidate{}, false
	}
	w := &p.fleet.weave
	w.collect(p)
	if !w.solve(p.window) {
		return Candidate{}, false
	}
	out := Candidate{PipelineID: -1, Assembled: true, Usable: true}
	for _, s := range w.stages(p.fleet, p.window) {
		out.add(p.explainStage(p.fleet.ids[s.Node], s.Layers))
	}
	return out, true
}

func (p *pricing) explainStage(node int32, layers LayerRange) StagePrice {
	var enter, layer Terms
	p.terms(node, &enter, &layer)
	s := StagePrice{Node: p.fleet.nodes[node].id, Layers: layers, Terms: enter}
	s.Terms.add(&layer, layers.Len())
	s.Cost = s.Terms.Total()
	return s
}

func (c *Candidate) add(s StagePrice) {
	c.Stages = append(c.Stages, s)
	c.Terms.add(&s.Terms, 1)
	c.Cost = c.Cost.Add(s.Cost)
}

// verdict says why a usable candidate won or lost against the winner.
func (p *pricing) verdict(c, winner *Candidate) string {
	name := fmt.Sprintf("pipeline %d", winner.PipelineID)
	if winner.Assembled {
		name = "the assembled chain"
	}
	switch {
	case c.Chosen && p.explore && c.Terms[TermExplore] != 0:
		return "chosen to find out about a node"
	case c.Chosen:
		return "chosen"
	case c.Assembled && p.policy.onlyBroken():
		return "not taken while a copy can be used"
	case c.Cost > winner.Cost:
		return fmt.Sprintf("%s dearer than %s", (c.Cost - winner.Cost).round(), name)
	case c.Assembled && c.Cost < winner.Cost:
		return fmt.Sprintf("saves %s over %s, less than the margin of %v", (winner.Cost - c.Cost).round(), name, max(0, p.policy.Margin))
	case c.Cost < winner.Cost && winner.Terms[TermExplore] != 0:
		return fmt.Sprintf("cheaper, but this request finds out about a node of %s", name)
	case c.Cost < winner.Cost:
		return fmt.Sprintf("cheaper than %s, but not one of the two that were drawn", name)
	}
	return fmt.Sprintf("as dear as %s, which comes first", name)
}

// String prints one candidate per line, its stages below it, for people: prices
// are rounded.
func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "model %q, layers %s, %d prompt tokens, %d expected\n", e.Model, e.Window, e.PromptTokens, e.OutputTokens)
	for _, c := range e.Candidates {
		name := fmt.Sprintf("pipeline %d", c.PipelineID)
		if c.Assembled {
			name = "assembled"
		}
		fmt.Fprintf(&b, "%s %s: %s\n", name, c.Cost.round(), c.Verdict)
		for _, s := range c.Stages {
			fmt.Fprintf(&b, "  %s[%s] %s: %s\n", s.Node, s.Layers, s.Cost.round(), s.Terms.round())
		}
	}
	if e.Error != "" {
		fmt.Fprintf(&b, "%s\n", e.Error)
	}
	return b.String()
}
