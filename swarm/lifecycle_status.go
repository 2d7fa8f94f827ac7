package swarm

import (
	"fmt"
	"maps"
	"slices"
)

// Health is the state of a whole swarm.
type Health int

const (
	// Healthy: every planned pipeline of the base models is complete, there
	// are as many as configured, and a living node covers every layer.
	Healthy Health = iota
	// Degraded: nodes live, but a pipeline is broken or missing, or a layer is
	// not covered. A degraded swarm serves what it can.
	Degraded
	// Failed: no node lives.
	Failed
	// Stopped: after Stop. There is no way back.
	Stopped
)

var healthNames = [...]string{"healthy", "degraded", "failed", "stopped"}

func (h Health) String() string {
	if h < 0 || int(h) >= len(healthNames) {
		return fmt.Sprintf("Health(%d)", int(h))
	}
	return healthNames[h]
}

// MarshalText writes the name of the state.
func (h Health) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads the name of the state.
func (h *Health) UnmarshalText(text []byte) error {
	i := slices.Index(healthNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("no such swarm state as %q: %w", text, ErrInvalid)
	}
	*h = Health(i)
	return nil
}

// settle derives the health from members, plan and deaths. Together with Stop
// it is the only place that assigns it.
func (s *Swarm) settle() {
	switch {
	case !s.anyAlive():
		s.health = Failed
	case s.whole():
		s.health = Healthy
	default:
		s.health = Degraded
	}
}

func (s *Swarm) anyAlive() bool {
	for id := range s.members {
		if !s.state.Nodes[id].Dead {
			return true
		}
	}
	return false
}

// whole reports whether every base model is served as configured.
func (s *Swarm) whole() bool {
	for i := range s.state.Plan.Models {
		m := &s.state.Plan.Models[i]
		if m.Expert {
			continue
		}
		live := 0
		for _, p := range s.state.Plan.PipelinesOf(m.ID) {
			if s.brokenBy(p) != "" {
				return false
			}
			live++
		}
		if live < m.Copies || len(s.uncovered(m)) > 0 {
			return false
		}
	}
	return true
}

func (s *Swarm) brokenBy(p Pipeline) string { return s.firstDead(Route{Stages: p.Stages}) }

// uncovered lists the layers of a model that no living node holds.
func (s *Swarm) uncovered(m *ModelSpec) []LayerRange {
	var out []LayerRange
	for l := range m.Layers {
		if !slices.ContainsFunc(s.state.Plan.Redundancy[m.ID][l], func(id string) bool { return !s.state.Nodes[id].Dead }) {
			out = appendLayer(out, l)
		}
	}
	return out
}

// A Status is a swarm at a glance.
type Status struct {
	State      Health           `json:"state"`
	Generation int64            `json:"generation"`
	Alive      []string         `json:"alive"`
	Dead       []string         `json:"dead,omitempty"`
	Pipelines  []PipelineStatus `json:"pipelines"`
	Uncovered  []Uncovered      `json:"uncovered,omitempty"` // layers that no living node holds
	Missing    []Unplaced       `json:"missing,omitempty"`   // copies that the plan could not place
	Waiting    []string         `json:"waiting,omitempty"`   // experts of the catalogue that are not placed
}

// A PipelineStatus is one planned copy and whether it lives.
type PipelineStatus struct {
	Pipeline
	Live     bool   `json:"live"`
	BrokenBy string `json:"broken_by,omitempty"` // the first dead node
}

// Uncovered names layers of a model without a living holder.
type Uncovered struct {
	Model  string       `json:"model"`
	Layers []LayerRange `json:"layers"`
}

// Status describes the swarm. It is the one call that a stopped swarm answers.
func (s *Swarm) Status() Status {
	plan := s.state.Plan
	st := Status{State: s.health, Generation: plan.Generation, Missing: plan.Unplaced}
	for _, id := range slices.Sorted(maps.Keys(s.members)) {
		if s.state.Nodes[id].Dead {
			st.Dead = append(st.Dead, id)
		} else {
			st.Alive = append(st.Alive, id)
		}
	}
	for _, p := range plan.Pipelines {
		by := s.brokenBy(p)
		st.Pipelines = append(st.Pipelines, PipelineStatus{Pipeline: p, Live: by == "", BrokenBy: by})
	}
	for i := range plan.Models {
		m := &plan.Models[i]
		if rs := s.uncovered(m); len(rs) > 0 && len(plan.PipelinesOf(m.ID)) > 0 {
			st.Uncovered = append(st.Uncovered, Uncovered{m.ID, rs})
		}
	}
	for _, m := range s.config.Catalogue {
		if len(plan.PipelinesOf(m.ID)) == 0 {
			st.Waiting = append(st.Waiting, m.ID)
		}
	}
	slices.Sort(st.Waiting)
	return st
}
