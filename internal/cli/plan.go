package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"

	"hecate/internal/control"
	"hecate/internal/report"
	"hecate/swarm"
)

type planCmd struct {
	where
	weighing
	Topology string `help:"Plan this topology file instead of asking a running swarm." placeholder:"FILE"`
	Copies   int    `help:"Copies of each base model, with --topology." default:"2"`
	WhatIf   string `help:"Say what this node's death would mean: now, of a running swarm, or for a topology file." placeholder:"NODE"`
	JSON     bool   `help:"Print the whole plan as JSON."`
}

// Run prints a plan, or what a death would mean for it. A plan that does not
// hold what it promises fails.
func (p *planCmd) Run(ctx context.Context, c console) error {
	if p.WhatIf != "" && p.Topology == "" {
		return p.whatIfNow(ctx, c.out)
	}
	plan, err := p.plan(ctx)
	if err != nil {
		return err
	}
	if p.WhatIf != "" {
		return p.whatIf(c.out, plan)
	}
	fault := plan.Validate()
	if p.JSON {
		if err := printJSON(c.out, plan); err != nil {
			return err
		}
	} else {
		printPlan(c.out, plan)
	}
	if fault != nil {
		return fmt.Errorf("the plan does not hold: %w", fault)
	}
	return nil
}

func (p *planCmd) plan(ctx context.Context) (*swarm.Plan, error) {
	weights, err := p.onPaper(p.Topology)
	if err != nil {
		return nil, err
	}
	if p.Topology == "" {
		var doc report.Plan
		if err := p.get(ctx, "/v1/swarm/plan", &doc); err != nil {
			return nil, err
		}
		return doc.Plan, nil
	}
	return planTopology(p.Topology, p.Copies, weights)
}

func (p *planCmd) whatIf(w io.Writer, plan *swarm.Plan) error {
	effects, err := plan.WhatIf(p.WhatIf)
	if err != nil {
		return &UsageError{err}
	}
	if p.JSON {
		return printJSON(w, map[string]any{"node": p.WhatIf, "effects": effects})
	}
	fmt.Fprintf(w, "if %s dies:\n", p.WhatIf)
	for _, e := range effects {
		fmt.Fprintf(w, "  %s: %s\n", e.Model, effectOf(e))
	}
	return nil
}

// whatIfNow asks a running swarm, which knows who lives and who has what.
func (p *planCmd) whatIfNow(ctx context.Context, w io.Writer) error {
	if err := control.ValidateNodeName(p.WhatIf); err != nil {
		return &UsageError{err}
	}
	var now report.WhatIf
	if err := p.get(ctx, "/v1/swarm/what-if?node="+url.QueryEscape(p.WhatIf), &now); err != nil {
		return err
	}
	if p.JSON {
		return printJSON(w, now)
	}
	fmt.Fprintf(w, "if %s dies now:\n", p.WhatIf)
	for _, e := range now.Effects {
		text := effectOf(e.Effect)
		if e.Already {
			text += " (it cannot be asked as it is)"
		}
		fmt.Fprintf(w, "  %s: %s; recovery: %s\n", e.Model, text, e.Recovery)
	}
	return nil
}

// effectOf says in words what a death would mean for a model.
func effectOf(e swarm.Effect) string {
	text := string(e.Outcome)
	switch e.Outcome {
	case swarm.ByCopy:
		text += ", another whole copy takes over"
	case swarm.BySplice:
		var by []string
		for _, r := range e.By {
			by = append(by, fmt.Sprintf("%s runs layers %s instead", r.By, r.Layers))
		}
		text += ", " + strings.Join(by, ", ")
	case swarm.ByFallback:
		text += ", " + e.Fallback + " stands in"
	case swarm.Down:
		text += fmt.Sprintf(", nobody else holds layers %v", e.Lost)
	}
	return text
}

func printPlan(w io.Writer, p *swarm.Plan) {
	t := table(w)
	fmt.Fprintln(t, "NODE\tUSES\tOF\tSHARE\tHOLDS")
	for _, n := range p.Nodes {
		fmt.Fprintf(t, "%s\t%s\t%s\t%.0f %%\t%s\n", n.Profile.ID, sizeOf(n.UsedBytes), sizeOf(n.Profile.MemoryBytes), 100*n.Share, placedOf(n.Fragments))
	}
	_ = t.Flush()
	fmt.Fprintln(w)
	for _, pl := range p.Pipelines {
		fmt.Fprintf(w, "copy %d of %s: %s\n", pl.ID, pl.Model, routeOf(pl.Stages))
	}
	for _, s := range p.SharedNodes {
		fmt.Fprintf(w, "shared: copies %v of %s both need %s; its death is mended by a splice\n", s.Pipelines, s.Model, s.Node)
	}
	for _, h := range p.Hurting {
		fmt.Fprintf(w, "hurts: %s alone holds layers %v of %s\n", h.Node, h.Layers, h.Model)
	}
	for _, u := range p.Unplaced {
		fmt.Fprintf(w, "no room: %d copies of %s: %s\n", u.Copies, u.Model, u.Reason)
	}
	for _, i := range p.Idle {
		fmt.Fprintf(w, "idle: %s: %s\n", i.Node, i.Reason)
	}
	for _, note := range p.Notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
}

func placedOf(fs []swarm.PlacedFragment) string {
	var parts []string
	for _, f := range fs {
		spare := ""
		if f.Spare {
			spare = " (spare)"
		}
		parts = append(parts, fmt.Sprintf("%s[%d-%d]%s", f.Model, f.Layers.First, f.Layers.Last, spare))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
