package gateway

import (
	"errors"
	"net/http"

	"hecate/internal/control"
	"hecate/internal/gateway/openai"
	"hecate/internal/report"
)

// whatIf serves GET /v1/swarm/what-if?node=ID.
func (g *Gateway) whatIf(w http.ResponseWriter, r *http.Request) error {
	node := r.URL.Query().Get("node")
	if err := control.ValidateNodeName(node); err != nil {
		return openai.BadRequest("node", "invalid_value", "'node': %s.", err)
	}
	prospects, err := control.WhatIf(g.plan.Load(), g.cfg.Membership.View(), node)
	if errors.Is(err, control.ErrNotFound) {
		return openai.BadRequest("node", "unknown_node", "There is no node %s: hecate node ls lists them.", node)
	}
	if err != nil {
		return err
	}
	out := report.WhatIf{Node: node, Effects: []report.Effect{}}
	for _, p := range prospects {
		out.Effects = append(out.Effects, report.Effect{Effect: p.Effect, Recovery: string(p.Recovery), Already: p.Already})
	}
	return writeJSON(w, out)
}

// lookAhead is up to how many members every status says what each death would
// mean now: it may take a plan for each. Above, it says what the plan says.
const lookAhead = 16

// prospectsOf says, per model, what a death would mean and how it recovers.
func (g *Gateway) prospectsOf(doc *control.PlanDocument, node string) (outcomes, recovery map[string]string) {
	view := g.cfg.Membership.View()
	outcomes, recovery = map[string]string{}, map[string]string{}
	if len(view.Members) > lookAhead {
		effects, err := doc.Plan.WhatIf(node)
		if err != nil {
			return nil, nil
		}
		for _, e := range effects {
			outcomes[e.Model] = string(e.Outcome)
		}
		return outcomes, nil
	}
	prospects, err := control.WhatIf(doc, view, node)
	if err != nil {
		return nil, nil
	}
	for _, p := range prospects {
		outcomes[p.Model], recovery[p.Model] = string(p.Outcome), string(p.Recovery)
	}
	return outcomes, recovery
}
