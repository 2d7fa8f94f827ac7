package pool

import (
	"cmp"
	"slices"
	"time"
)

// staticRequirement is how many writers a group and family with so many
// endpoints has while it is in use.
func staticRequirement(endpoints int, s *Settings) int {
	switch endpoints {
	case 0:
		return 0
	case 1:
		return max(s.FloorBase, 1+s.ShadowWriters)
	default:
		return max(s.FloorBase, endpoints)
	}
}

// floorInput is what the floor of one group and family depends on.
type floorInput struct {
	endpoints int
	sessions  int
	idle      time.Duration // since the last session left, or since the group appeared
	used      bool          // it ever had a session
}

// wantsFloor is the target before the caps. Sessions, and a grace time after
// the last one, hold the static requirement; an idle group may fall to
// floor_min.
func wantsFloor(in floorInput, s *Settings) int {
	full := staticRequirement(in.endpoints, s)
	if s.Floor == FloorStatic || in.sessions > 0 || in.idle < s.FloorIdle.D() {
		return full
	}
	if in.used && in.idle < s.FloorGrace.D() {
		return full
	}
	return lowestFloor(full, s)
}

// lowestFloor is what neither idleness nor a cap undercuts.
func lowestFloor(full int, s *Settings) int { return min(full, s.FloorMin) }

// floorClaim is one group and family before the caps are applied.
type floorClaim struct {
	target, lowest int
	sessions       int
	idle           time.Duration
}

// fitFloors lowers targets until their sum is within the caps: the groups that
// were idle longest first, then those in use, fewest sessions first, one writer
// at a time in turn. The lowest floor outranks the caps.
func fitFloors(claims []floorClaim, limit int) {
	excess := -limit
	order := make([]int, len(claims))
	for i := range claims {
		excess += claims[i].target
		order[i] = i
	}
	if excess <= 0 {
		return
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(claims[a].sessions, claims[b].sessions), cmp.Compare(claims[b].idle, claims[a].idle))
	})
	idle := 0
	for idle < len(order) && claims[order[idle]].sessions == 0 {
		idle++
	}
	for _, part := range [][]int{order[:idle], order[idle:]} {
		excess = compress(claims, part, excess)
	}
}

// compress takes up to excess writers from the claims of part, in turns.
func compress(claims []floorClaim, part []int, excess int) int {
	for took := true; took && excess > 0; {
		took = false
		for _, i := range part {
			if excess > 0 && claims[i].target > claims[i].lowest {
				claims[i].target--
				excess--
				took = true
			}
		}
	}
	return excess
}

// writerCap is the most writers that floors may add up to.
func writerCap(s *Settings, cores int) int { return min(s.MaxWriters, s.MaxWritersPerCore*cores) }
