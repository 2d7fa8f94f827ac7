package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hecate/swarm"
)

type routeCmd struct {
	Eval    routeEvalCmd    `cmd:"" help:"Answer an array of cases, to check the rules: score, failover, swarm or swarm_failover."`
	Explain routeExplainCmd `cmd:"" help:"Show what a request would cost on each copy, term by term, and why the winner wins."`
}

type routeEvalCmd struct {
	Kind string `arg:"" enum:"score,failover,swarm,swarm_failover" help:"Which rule: score, failover, swarm, swarm_failover."`
	File string `arg:"" help:"JSON array of cases; - for standard input."`
}

// Run prints the array of answers, in the order of the cases.
func (r *routeEvalCmd) Run(c console) error {
	cases, err := r.read(c)
	if err != nil {
		return err
	}
	answers, err := swarm.Eval(r.Kind, cases)
	if err != nil {
		return usage("%s: %w", r.File, err)
	}
	_, err = fmt.Fprintf(c.out, "%s\n", answers)
	return err
}

func (r *routeEvalCmd) read(c console) ([]byte, error) {
	if r.File != "-" {
		return readInput(r.File)
	}
	return readAll(c.in)
}

type routeExplainCmd struct {
	where
	weighing
	Model        string `arg:"" optional:"" help:"Model; the first base model when absent."`
	Topology     string `help:"Explain this topology file, nodes idle, instead of a running swarm." placeholder:"FILE"`
	Copies       int    `help:"Copies of each base model, with --topology." default:"2"`
	PromptTokens int    `help:"Length of the prompt." default:"0"`
	MaxTokens    int    `help:"Longest answer." default:"256"`
	JSON         bool   `help:"Print as JSON."`
}

// Run explains the choice for one request.
func (r *routeExplainCmd) Run(ctx context.Context, c console) error {
	e, err := r.explain(ctx)
	if err != nil {
		return err
	}
	if r.JSON {
		return printJSON(c.out, e)
	}
	fmt.Fprintln(c.out, strings.TrimRight(e.String(), "\n"))
	if e.Error != "" {
		return errQuiet
	}
	return nil
}

func (r *routeExplainCmd) explain(ctx context.Context) (e swarm.Explanation, err error) {
	weights, err := r.onPaper(r.Topology)
	if err != nil {
		return e, err
	}
	if r.Topology == "" {
		path := fmt.Sprintf("/v1/swarm/explain?model=%s&prompt_tokens=%d&max_tokens=%d", url.QueryEscape(r.Model), r.PromptTokens, r.MaxTokens)
		err = r.get(ctx, path, &e)
		return e, err
	}
	plan, err := planTopology(r.Topology, r.Copies, weights)
	if err != nil {
		return e, err
	}
	if r.Model == "" {
		r.Model = firstBase(plan)
	}
	if _, ok := plan.Model(r.Model); !ok {
		return e, usage("%s: unknown model %q", r.Topology, r.Model)
	}
	fleet, err := idleFleet(plan)
	if err != nil {
		return e, err
	}
	req := swarm.AdaptiveRequest{PromptTokens: r.PromptTokens, OutputTokens: r.MaxTokens}
	if e, err = swarm.NewRouter(plan, fleet).Explain(r.Model, req, swarm.Policy{Weights: weights}); errors.Is(err, swarm.ErrInvalid) {
		err = &UsageError{err}
	}
	return e, err
}

// firstBase is the first model of a plan that is neither an expert nor a
// stand-in, else its first.
func firstBase(plan *swarm.Plan) string {
	for _, m := range plan.Models {
		if !m.Expert && m.FallbackFor == "" {
			return m.ID
		}
	}
	return plan.Models[0].ID
}

// idleFleet is a plan's nodes as they declare themselves, without load.
func idleFleet(plan *swarm.Plan) (*swarm.Fleet, error) {
	var profiles []swarm.NodeProfile
	for _, n := range plan.Nodes {
		profiles = append(profiles, n.Profile)
	}
	fleet := swarm.NewFleet("")
	for id, state := range swarm.StateFromProfiles(plan, profiles).Nodes {
		if err := fleet.Observe(state, time.Time{}); err != nil {
			return nil, fmt.Errorf("node %s: %w", id, err)
		}
	}
	return fleet, nil
}

type swarmSimCmd struct {
	weighing
	Topology  string `required:"" help:"Topology file: models, nodes, joiners." placeholder:"FILE"`
	Kill      string `help:"Node that dies first." placeholder:"NODE"`
	Pipelines int    `help:"Copies of the base model." default:"2"`
	Script    string `help:"File with more steps, one a line: kill, revive, join, leave, load, request." placeholder:"FILE"`
	Text      bool   `help:"Print for people instead of JSON."`
}

// Run tells one life of the swarm; it fails when the final plan does not hold.
func (s *swarmSimCmd) Run(c console) error {
	t, err := readTopology(s.Topology)
	if err != nil {
		return err
	}
	weights, err := s.weights()
	if err != nil {
		return err
	}
	opts := swarm.StoryOptions{Pipelines: s.Pipelines, Kill: s.Kill, Weights: weights, Planner: swarm.Planner{Weights: weights}}
	if s.Script != "" {
		text, err := os.ReadFile(filepath.Clean(s.Script))
		if err != nil {
			return usage("read %s: %w", s.Script, err)
		}
		if opts.Script, err = swarm.ParseScript(string(text)); err != nil {
			return usage("%s: %w", s.Script, err)
		}
	}
	story, err := swarm.RunStory(t, opts)
	if err != nil {
		return &UsageError{err}
	}
	if s.Text {
		fmt.Fprint(c.out, story)
	} else {
		b, err := json.Marshal(story)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "%s\n", b)
	}
	if !story.Valid {
		return fmt.Errorf("the final plan does not hold: %s", story.Fault)
	}
	return nil
}
