package swarm

import (
	"fmt"
	"slices"
)

// A Story is the record of one life in memory: what swarm-sim prints.
type Story struct {
	Steps []StoryStep `json:"steps"`
	Valid bool        `json:"valid"`           // the final plan validates
	Fault string      `json:"fault,omitempty"` // why it does not
}

// A StoryStep is the swarm after one step.
type StoryStep struct {
	Step       string     `json:"step"`
	Node       string     `json:"node,omitempty"`
	Model      string     `json:"model,omitempty"` // of a request that names one
	State      Health     `json:"state"`
	Generation int64      `json:"generation"`
	Route      *StoryPath `json:"route"`           // of a kill, the rescue; null when there is none
	Live       []Pipeline `json:"live_pipelines"`  // whole copies, experts included
	Error      string     `json:"error,omitempty"` // a rescue or request that failed, a refused call
	NoOp       bool       `json:"no_op,omitempty"` // nothing was there to be done
	Reason     string     `json:"reason,omitempty"`
	MovedBytes int64      `json:"moved_bytes,omitempty"` // what a new plan makes nodes fetch
}

// A StoryPath is a route with its nodes spelled out.
type StoryPath struct {
	Model      string        `json:"model"`
	PipelineID int           `json:"pipeline_id"`
	Nodes      []string      `json:"nodes"`
	Layers     []LayerRange  `json:"layers,omitempty"` // by node; absent when they are another model's
	Cost       Cost          `json:"cost"`
	Degraded   bool          `json:"degraded"`
	Replaced   []Replacement `json:"replaced"`
	Reason     string        `json:"reason,omitempty"`
}

// StoryOptions say how a story begins and what happens first.
type StoryOptions struct {
	Pipelines int       // copies of the base models; at least 1
	Kill      string    // the node that dies first; "" for none
	Script    []Command // what happens after start, failover and growth
	Bare      bool      // start and Script alone: no failover and no growth

	Planner Planner      // headroom and planning weights
	Weights *Weights     // for routing; nil: DefaultWeights
	Growth  GrowthPolicy // nil: PriorityGrowth
}

// RunStory lives one swarm's life: it starts over the topology's nodes, loses
// the node to kill, grows by the first joiner, and then follows the script.
// Growth without a joiner, and failover without a node to kill, are recorded
// as steps without an effect. What a swarm refuses or cannot rescue is
// recorded in its step.
//
// An error means that the story could not begin: a bad topology, no pipelines,
// or a step that names a node nobody ever heard of.
func RunStory(t Topology, opts StoryOptions) (Story, error) {
	if err := t.Validate(); err != nil {
		return Story{}, err
	}
	teller := &teller{topology: t, options: opts, joiners: slices.Clone(t.Joiners)}
	if err := teller.checkNames(); err != nil {
		return Story{}, err
	}
	s, err := New(t.Nodes, Config{
		Models: t.Base(), Catalogue: t.Experts(), Pipelines: opts.Pipelines,
		Growth: opts.Growth, Planner: opts.Planner, Weights: opts.Weights,
	})
	if err != nil {
		return Story{}, err
	}
	teller.swarm = s
	start := StoryStep{Step: "start", MovedBytes: s.Plan().MovedBytes}
	teller.ask(&start, "", Request{})
	teller.record(start)
	if !opts.Bare {
		teller.failover()
		teller.growth()
	}
	for _, c := range opts.Script {
		teller.follow(c)
	}
	teller.story.Valid = true
	if err := s.Plan().Validate(); err != nil {
		teller.story.Valid, teller.story.Fault = false, err.Error()
	}
	return teller.story, nil
}

// A teller lives a story and writes it down.
type teller struct {
	topology Topology
	options  StoryOptions
	joiners  []NodeProfile // not joined yet
	swarm    *Swarm
	story    Story
}

// checkNames refuses a story about nodes that are in no part of the topology.
func (t *teller) checkNames() error {
	known := func(id string) bool {
		same := func(p NodeProfile) bool { return p.ID == id }
		return slices.ContainsFunc(t.topology.Nodes, same) || slices.ContainsFunc(t.topology.Joiners, same)
	}
	if k := t.options.Kill; k != "" && !slices.ContainsFunc(t.topology.Nodes, func(p NodeProfile) bool { return p.ID == k }) {
		return fmt.Errorf("unknown node %q to kill: %w", k, ErrInvalid)
	}
	for _, c := range t.options.Script {
		if err := c.check(); err != nil {
			return err
		}
		switch c.Verb {
		case "kill", "revive", "join", "leave", "load":
			if len(c.Args) > 0 && !known(c.Args[0]) {
				return fmt.Errorf("script line %d: unknown node %q: %w", c.Line, c.Args[0], ErrInvalid)
			}
		}
	}
	return nil
}

func (t *teller) failover() {
	step := StoryStep{Step: "failover", Node: t.options.Kill}
	if step.Node == "" {
		step.NoOp, step.Reason = true, "no node to kill"
		t.ask(&step, "", Request{})
	} else {
		t.kill(&step)
	}
	t.record(step)
}

func (t *teller) growth() {
	step := StoryStep{Step: "growth"}
	t.join(&step)
	t.record(step)
}

// follow lives through one command of the script.
func (t *teller) follow(c Command) {
	step := StoryStep{Step: c.Verb}
	switch c.Verb {
	case "request":
		model, req, _ := c.request() // checked before the story began
		step.Model = model
		t.ask(&step, model, req)
		t.record(step)
		return
	case "kill", "revive", "leave", "load", "join":
		if len(c.Args) > 0 {
			step.Node = c.Args[0]
		}
	}
	t.act(&step, c)
	t.record(step)
}

func (t *teller) act(step *StoryStep, c Command) {
	switch c.Verb {
	case "kill":
		t.kill(step)
	case "join":
		t.join(step)
	case "revive":
		t.done(step, t.swarm.MarkAlive(step.Node), false)
	case "leave":
		t.done(step, t.swarm.RemoveNode(step.Node), true)
	case "replan":
		t.done(step, t.swarm.Replan(), true)
	case "load":
		t.done(step, t.load(c), false)
	case "stop":
		if err := t.swarm.Stop(); err != nil {
			step.Error = err.Error()
		}
	}
}

// done writes an error down, or what the call has led to.
func (t *teller) done(step *StoryStep, err error, planned bool) {
	if err != nil {
		step.Error = err.Error()
		return
	}
	if planned {
		step.MovedBytes = t.swarm.Plan().MovedBytes
	}
	t.ask(step, "", Request{})
}

func (t *teller) kill(step *StoryStep) {
	rescue, err := t.swarm.MarkDown(step.Node)
	if err != nil {
		step.Error = err.Error()
		return
	}
	if rescue.Reason == ReasonAlreadyDown {
		step.NoOp, step.Reason = true, rescue.Reason
		t.ask(step, "", Request{})
		return
	}
	step.Route = pathOf(rescue)
}

// join takes the named joiner in, or the next one when none is named.
func (t *teller) join(step *StoryStep) {
	i := slices.IndexFunc(t.joiners, func(p NodeProfile) bool { return step.Node == "" || p.ID == step.Node })
	if i < 0 {
		step.NoOp, step.Reason = true, "nobody is waiting to join"
		if step.Node != "" {
			step.Reason = "it is not waiting to join"
		}
		t.ask(step, "", Request{})
		return
	}
	step.Node = t.joiners[i].ID
	err := t.swarm.AddNode(t.joiners[i])
	if err == nil {
		t.joiners = slices.Delete(t.joiners, i, i+1)
	}
	t.done(step, err, true)
}

func (t *teller) load(c Command) error {
	numbers, _ := c.sample() // checked before the story began
	sample, ok := t.swarm.State().Nodes[c.Args[0]]
	if !ok {
		return t.swarm.Report(NodeState{ID: c.Args[0]})
	}
	sample.Load = Measured(numbers[0])
	if len(numbers) > 1 {
		sample.LatencyMS = Measured(numbers[1])
	}
	return t.swarm.Report(sample)
}

// ask routes a request and writes the answer down.
func (t *teller) ask(step *StoryStep, model string, req Request) {
	if model == "" {
		model = t.swarm.Base()
	}
	route, err := t.swarm.RouteModel(model, req)
	if err != nil {
		step.Error = err.Error()
		return
	}
	step.Route = pathOf(route)
}

func pathOf(r Route) *StoryPath {
	p := &StoryPath{
		Model: r.Model, PipelineID: r.PipelineID, Nodes: r.Nodes(), Cost: r.Cost,
		Degraded: r.Degraded, Replaced: r.Replaced, Reason: r.Reason,
	}
	if p.Replaced == nil {
		p.Replaced = []Replacement{}
	}
	if r.Window().Stated() {
		for _, s := range r.Stages {
			p.Layers = append(p.Layers, s.Layers)
		}
	}
	return p
}

// record adds what is so after the step.
func (t *teller) record(step StoryStep) {
	st := t.swarm.Status()
	step.State, step.Generation = st.State, st.Generation
	step.Live = []Pipeline{}
	for _, p := range st.Pipelines {
		if p.Live {
			step.Live = append(step.Live, p.Pipeline)
		}
	}
	t.story.Steps = append(t.story.Steps, step)
}
