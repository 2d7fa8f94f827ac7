package sim

import (
	"fmt"
	"strings"
	"time"

	"hecate/swarm"
)

// A Scenario is everything that happens to a swarm from outside. It is shared
// by all policies and is not changed by a run.
type Scenario struct {
	Plan     *swarm.Plan // who holds what; required
	Hardware Hardware
	Arrivals []Arrival // by rising time; required

	Telemetry Telemetry
	Outages   []Outage      // deaths of nodes, in any order; those of one node must not overlap
	Detect    time.Duration // from a death to its detection; 0 means 300 ms

	// Gateways is how many gateways share the load; 0 means 1. Each knows its
	// own reservations only; all hear the same reports.
	Gateways int

	// Piece is how many tokens a session decodes before it looks at the batches
	// again, at least 1; 0 means 16. 1 is exact and slow.
	Piece int

	// Watch is the time in which the loads of nodes are averaged; zero: from
	// the first arrival to the last.
	Watch Span

	Weights *swarm.Weights // of all policies; nil: swarm.DefaultWeights
	Policy  swarm.Policy   // of the adaptive policies; its Choice is theirs
	Rules   Rules          // the decisions; the zero value are swarm's own
	Seed    uint64         // of everything that is left to chance in a run
}

// A Span is a stretch of virtual time.
type Span struct{ From, To time.Duration }

// Telemetry says how late the gateway knows what a node says of itself.
type Telemetry struct {
	Every time.Duration // between two reports of a node; 0 means 1 s
	Delay time.Duration // from saying to hearing, >= 0
}

// An Outage is one death of a node.
type Outage struct {
	Node string
	At   time.Duration
	For  time.Duration // until it is back; 0: it never is. At least the time of detection
}

// An Arrival is one request.
type Arrival struct {
	At     time.Duration
	Prompt int32 // tokens, >= 0
	Output int32 // tokens of the answer, >= 1
	Model  int32 // index in the plan's Models
}

func (s Scenario) withDefaults() Scenario {
	s.Hardware = s.Hardware.withDefaults()
	if s.Telemetry.Every == 0 {
		s.Telemetry.Every = time.Second
	}
	if s.Detect == 0 {
		s.Detect = 300 * time.Millisecond
	}
	if s.Gateways == 0 {
		s.Gateways = 1
	}
	if s.Piece == 0 {
		s.Piece = 16
	}
	if s.Watch == (Span{}) && len(s.Arrivals) > 0 {
		s.Watch = Span{s.Arrivals[0].At, s.Arrivals[len(s.Arrivals)-1].At}
	}
	s.Rules = s.Rules.withDefaults()
	return s
}

// validate lists everything that is wrong with a scenario with its defaults.
func (s *Scenario) validate() error {
	if s.Plan == nil || len(s.Plan.Pipelines) == 0 {
		return fmt.Errorf("the plan has no copy of any model: %w", swarm.ErrInvalid)
	}
	var faults []string
	wrong := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if len(s.Arrivals) == 0 {
		wrong("no requests arrive")
	}
	for i, a := range s.Arrivals {
		if fault := s.arrivalFault(i, a); fault != "" {
			wrong("request %d: %s", i, fault)
			break // one of a million is enough
		}
	}
	if s.Telemetry.Every < 0 || s.Telemetry.Delay < 0 || s.Detect < 0 {
		wrong("telemetry every %v after %v and detection after %v: none may be below zero", s.Telemetry.Every, s.Telemetry.Delay, s.Detect)
	}
	if s.Gateways < 0 || s.Piece < 0 {
		wrong("%d gateways, pieces of %d tokens: neither may be below zero", s.Gateways, s.Piece)
	}
	for _, err := range []error{s.Hardware.validate(), s.outageFault(), s.Policy.Validate()} {
		if err != nil {
			wrong("%v", err)
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("%s: %w", strings.Join(faults, "; "), swarm.ErrInvalid)
	}
	return nil
}

func (s *Scenario) arrivalFault(i int, a Arrival) string {
	switch {
	case a.At < 0 || i > 0 && a.At < s.Arrivals[i-1].At:
		return fmt.Sprintf("arrives at %v, before the one ahead of it", a.At)
	case a.Prompt < 0 || a.Output < 1:
		return fmt.Sprintf("prompt of %d and answer of %d tokens, want at least 0 and 1", a.Prompt, a.Output)
	case a.Model < 0 || int(a.Model) >= len(s.Plan.Models):
		return fmt.Sprintf("model number %d, the plan has %d", a.Model, len(s.Plan.Models))
	}
	return ""
}

// outageFault finds an outage of an unknown node, and two of one node at once.
func (s *Scenario) outageFault() error {
	type span struct{ from, to time.Duration }
	seen := map[string][]span{}
	for _, o := range s.Outages {
		if _, ok := s.Plan.Node(o.Node); !ok {
			return fmt.Errorf("outage of node %q, which the plan does not have", o.Node)
		}
		if o.At < 0 || o.For < 0 || o.For > 0 && o.For < s.Detect {
			return fmt.Errorf("outage of %s at %v for %v: want a time from 0 and at least the %v of detection", o.Node, o.At, o.For, s.Detect)
		}
		now := span{o.At, o.At + o.For}
		if o.For == 0 {
			now.to = 1<<63 - 1
		}
		for _, other := range seen[o.Node] {
			if now.from <= other.to && other.from <= now.to {
				return fmt.Errorf("outage of %s at %v: another one lasts from %v to %v", o.Node, o.At, other.from, other.to)
			}
		}
		seen[o.Node] = append(seen[o.Node], now)
	}
	return nil
}
