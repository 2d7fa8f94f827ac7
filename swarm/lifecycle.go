package swarm

import (
	"fmt"
	"maps"
	"slices"
)

// A Swarm is the life cycle of one swarm in memory: who is a member, who is
// alive, what the plan is, and what that makes of the whole.
//
//	           MarkDown                MarkDown of the last
//	healthy <------------> degraded <----------------------> failed
//	           MarkAlive, AddNode,     MarkAlive, AddNode
//	           RemoveNode, Replan
//	        any of them -- Stop --> stopped, for good
//
// It is pure but for the growth policy that it is given. It is not safe for
// concurrent use: whoever owns it calls it.
//
// Every call that is refused is an error that changes nothing.
type Swarm struct {
	config  Config
	members map[string]NodeProfile
	state   State // plan and telemetry; dead members too
	health  Health
}

// New plans a swarm over the profiles. All nodes start alive, with their
// declared latency and score and no load.
func New(profiles []NodeProfile, config Config) (*Swarm, error) {
	config, err := config.resolved()
	if err != nil {
		return nil, fmt.Errorf("new swarm: %w", err)
	}
	if err := checkProfiles(profiles); err != nil {
		return nil, fmt.Errorf("new swarm: %w", err)
	}
	s := &Swarm{config: config, members: make(map[string]NodeProfile, len(profiles))}
	for _, p := range profiles {
		s.members[p.ID] = p
	}
	plan, err := s.planFor(profiles, nil)
	if err != nil {
		return nil, fmt.Errorf("new swarm: %w", err)
	}
	s.state = StateFromProfiles(plan, profiles)
	s.state.Weights = config.Weights
	s.settle()
	return s, nil
}

// Plan is the current plan. It must not be changed.
func (s *Swarm) Plan() *Plan { return s.state.Plan }

// State is the current plan with the current telemetry. It must not be changed.
func (s *Swarm) State() State { return s.state }

// Base is the model that Route asks for.
func (s *Swarm) Base() string { return s.config.Model }

// ReasonAlreadyDown is the reason of the empty route that MarkDown returns for
// a node that was dead before.
const ReasonAlreadyDown = "already down"

// MarkDown marks a node dead and returns the rescue of the route that the base
// model takes now: the same route with ReasonNotOnRoute when the node is not
// on it. The rescue is computed while the node still lives in the books, else
// there would be nothing left to repair.
//
// When there is no rescue the error says so (ErrUnrecoverable, or ErrNoRoute
// when there was no copy to begin with) and the node is dead all the same.
// Marking a dead node again is no error and changes nothing. The plan stays:
// whether a death is worth moving layers is the owner's decision (Replan).
func (s *Swarm) MarkDown(id string) (Route, error) {
	if err := s.refuse(id); err != nil {
		return Route{}, fmt.Errorf("mark down: %w", err)
	}
	if s.state.Nodes[id].Dead {
		return Route{Model: s.config.Model, PipelineID: -1, Reason: ReasonAlreadyDown}, nil
	}
	rescue, err := s.rescue(id)
	n := s.state.Nodes[id]
	n.Dead = true
	s.state.Nodes[id] = n
	s.settle()
	if err != nil {
		return Route{}, fmt.Errorf("mark %s down: %w", id, err)
	}
	return rescue, nil
}

// rescue is what becomes of the base model's current route without the node.
func (s *Swarm) rescue(id string) (Route, error) {
	route, err := s.Route(Request{})
	if err != nil {
		broken, ok := s.cheapestBroken(s.config.Model, Request{})
		if !ok {
			return Route{}, err
		}
		route = broken
		if !route.Uses(id) {
			id = s.firstDead(route)
		}
	}
	return s.repair(route, id, Request{})
}

// MarkAlive brings a member back. Its sample is unmeasured again: what it said
// before it died is no evidence. Marking a living node changes nothing.
func (s *Swarm) MarkAlive(id string) error {
	if err := s.refuse(id); err != nil {
		return fmt.Errorf("mark alive: %w", err)
	}
	n := s.state.Nodes[id]
	if !n.Dead {
		return nil
	}
	n.Dead = false
	s.state.Nodes[id] = n.Unmeasured()
	s.settle()
	return nil
}

// AddNode takes a new member in and plans again over the living ones. The
// plan's generation rises.
func (s *Swarm) AddNode(profile NodeProfile) error {
	if s.health == Stopped {
		return fmt.Errorf("add node: %w", ErrStopped)
	}
	if err := profile.Validate(); err != nil {
		return fmt.Errorf("add node: %w", err)
	}
	if _, ok := s.members[profile.ID]; ok {
		return fmt.Errorf("add node: %q is a member already: %w", profile.ID, ErrInvalid)
	}
	members := maps.Clone(s.members)
	members[profile.ID] = profile
	if err := s.replan(members); err != nil {
		return fmt.Errorf("add node %s: %w", profile.ID, err)
	}
	return nil
}

// RemoveNode takes a member out, dead or alive, and plans again over the
// living ones. The plan's generation rises. The last living node cannot be
// removed: there would be nothing to plan over.
func (s *Swarm) RemoveNode(id string) error {
	if err := s.refuse(id); err != nil {
		return fmt.Errorf("remove node: %w", err)
	}
	members := maps.Clone(s.members)
	delete(members, id)
	if err := s.replan(members); err != nil {
		return fmt.Errorf("remove node %s: %w", id, err)
	}
	return nil
}

// Replan plans again over the living members, keeping what stands where that
// is as good. The generation rises.
func (s *Swarm) Replan() error {
	if s.health == Stopped {
		return fmt.Errorf("replan: %w", ErrStopped)
	}
	if err := s.replan(s.members); err != nil {
		return fmt.Errorf("replan: %w", err)
	}
	return nil
}

// replan settles everything or nothing.
func (s *Swarm) replan(members map[string]NodeProfile) error {
	var living []NodeProfile
	for _, id := range slices.Sorted(maps.Keys(members)) {
		if !s.state.Nodes[id].Dead {
			living = append(living, members[id])
		}
	}
	if len(living) == 0 {
		return fmt.Errorf("no living node would be left: %w", ErrInvalid)
	}
	plan, err := s.planFor(living, s.state.Plan)
	if err != nil {
		return err
	}
	plan.Generation = s.state.Plan.Generation + 1
	next := StateFromProfiles(plan, living)
	next.Weights = s.state.Weights
	for id := range members {
		if old, known := s.state.Nodes[id]; known {
			fresh := next.Nodes[id]
			fresh.ID, fresh.Dead = id, old.Dead
			fresh.LatencyMS, fresh.Load, fresh.Score = old.LatencyMS, old.Load, old.Score
			next.Nodes[id] = fresh
		}
	}
	s.members, s.state = members, next
	s.settle()
	return nil
}

// Report takes the numbers of a node's sample in: latency, load and score.
// Life and death are told by MarkDown and MarkAlive, holdings by the plan.
func (s *Swarm) Report(sample NodeState) error {
	if err := s.refuse(sample.ID); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := sample.Validate(); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	n := s.state.Nodes[sample.ID]
	n.LatencyMS, n.Load, n.Score = sample.LatencyMS, sample.Load, sample.Score
	s.state.Nodes[sample.ID] = n
	return nil
}

// Stop ends the swarm. Every later call but Status is refused with ErrStopped,
// another Stop too.
func (s *Swarm) Stop() error {
	if s.health == Stopped {
		return fmt.Errorf("stop: %w", ErrStopped)
	}
	s.health = Stopped
	return nil
}

// refuse is the gate of every call about one member.
func (s *Swarm) refuse(id string) error {
	if s.health == Stopped {
		return ErrStopped
	}
	if _, ok := s.members[id]; !ok {
		return fmt.Errorf("unknown node %q: %w", id, ErrInvalid)
	}
	return nil
}
