package pool

import (
	"context"
	"time"
)

// generation is an epoch of the pool, tied to one desired map and revision.
//
//	bootstrap --> warmup --> activation --> drain --> retire
//	                 |           |
//	                 +-----------+--> dropped (superseded, too old, cancelled)
//
// bootstrap: created, owns nothing. warmup: owns the writers that were connected
// for it. activation: one atomic step, re-checked under all locks; a refusal
// changes nothing. drain: a newer one is active; its writers serve what they
// have. retire: its last writer is gone.
type generation struct {
	id       uint64
	hash     string
	revision uint64
	groups   map[string]Group
	started  time.Time
	activeAt time.Time
	last     outcome // of the newest activation attempt, so that repeats are not counted
	ctx      context.Context
	cancel   context.CancelFunc
}

// endpoints are those that the generation wants for a group and family.
func (g *generation) endpoints(k pairKey) []Endpoint { return g.groups[k.group][k.family] }

func (g *generation) wants(k pairKey, e Endpoint) bool {
	for _, have := range g.endpoints(k) {
		if have == e {
			return true
		}
	}
	return false
}

// outcome is how an activation attempt ended.
type outcome int

const (
	outcomeNone       outcome = iota
	outcomeActivated          // done
	outcomeSuperseded         // the desired map is another, or another generation came first
	outcomeCoverage           // too few groups have all their fresh writers
	outcomeRedundancy         // a group would be left without writers, and stale ones may not serve
	outcomeExpired            // warmed up for longer than pending_max_age
	outcomeCancelled          // the pool closes
	outcomes
)

var outcomeNames = [outcomes]string{
	outcomeNone: "none", outcomeActivated: "activated", outcomeSuperseded: "superseded", outcomeCoverage: "coverage",
	outcomeRedundancy: "redundancy", outcomeExpired: "expired", outcomeCancelled: "cancelled",
}

func (o outcome) String() string { return outcomeNames[o] }

// coverage is the state of one group and family against a generation.
type coverage struct {
	key       pairKey
	required  int // static requirement
	fresh     int // living writers of this generation
	reachable bool
}

func (c coverage) covered() bool { return c.fresh >= c.required }

// judgeCoverage decides whether a generation may become active, and which pairs
// it would leave to stale writers. A family counts only once it was reachable,
// but a group none of whose families ever was counts as one missing pair. In
// small maps the ratio rounds in favour of one missing group when stale writers
// may serve it.
func judgeCoverage(pairs []coverage, s *Settings) (outcome, []pairKey) {
	reached := map[string]bool{}
	for _, c := range pairs {
		reached[c.key.group] = reached[c.key.group] || c.reachable || c.covered()
	}
	total := 0
	var missing []pairKey
	for _, c := range pairs {
		if !c.reachable && reached[c.key.group] && !c.covered() {
			continue // a family that never worked beside one that does
		}
		if !reached[c.key.group] {
			reached[c.key.group] = true // count the dead group once
			total++
			missing = append(missing, c.key)
			continue
		}
		total++
		if !c.covered() {
			missing = append(missing, c.key)
		}
	}
	if len(missing) > allowedMissing(total, s) {
		return outcomeCoverage, missing
	}
	if len(missing) > 0 && s.BindStale == BindStaleNever {
		return outcomeRedundancy, missing
	}
	return outcomeActivated, missing
}

// allowedMissing is how many pairs of total may be missing.
func allowedMissing(total int, s *Settings) int {
	const slack = 1e-9 // 0.8 x 5 is 4, not 4.000000001
	allowed := int(float64(total)*(1-s.MinFreshRatio) + slack)
	if allowed == 0 && total > 1 && s.MinFreshRatio < 1 && s.BindStale != BindStaleNever {
		allowed = 1
	}
	return allowed
}
