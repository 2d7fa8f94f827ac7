package swarm

import "slices"

// prefill estimates how long a fresh set of stages takes to read everything
// that there is to read.
func (p *pricing) prefill(stages []Stage) Cost {
	total := Cost(0)
	for _, s := range stages {
		total = total.Add(p.reading(s, p.req.PromptTokens))
	}
	return total
}

// readingTerms are the terms that are time which passes, not a preference.
var readingTerms = [...]Term{TermDecode, TermLink, TermPrefill, TermLoad, TermUnmeasured, TermStale}

// reading estimates how long one stage takes to read that many tokens and to
// compute the one that the client waits for, queueing and link included.
func (p *pricing) reading(s Stage, tokens int) Cost {
	alone := *p
	alone.req.PromptTokens, alone.req.OutputTokens = max(0, tokens), 1
	var enter, layer Terms
	alone.terms(p.fleet.index(s.Node), &enter, &layer)
	total := Cost(0)
	for _, t := range readingTerms {
		total = total.Add(enter[t]).Add(layer[t].Times(s.Layers.Len()))
	}
	return total
}

// replay estimates how long a splice takes: each substitute reads the lost
// layers' boundary states, less what a shadow has given it already. Without
// the states, everything before the last lost layer has to be run again too.
func (s *salvage) replay(out Route) Cost {
	total := Cost(0)
	context := s.pricing.req.PromptTokens
	for _, r := range out.Replaced {
		stage := Stage{Node: r.By, Layers: r.Layers}
		total = total.Add(s.reading(stage, context-s.req.Warm[r.By]))
	}
	if s.req.StatesHeld {
		return total
	}
	lastLost := out.Replaced[len(out.Replaced)-1].Layers.Last
	for _, st := range s.route.Stages {
		if st.Layers.First <= lastLost && !slices.Contains(s.failed, st.Node) {
			total = total.Add(s.reading(st, context))
		}
	}
	return total
}
