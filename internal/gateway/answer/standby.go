package answer

import (
	"context"

	"hecate/swarm"
)

// Standbys says where shadows of an answer's stages may be kept.
type Standbys interface {
	// Standby reserves room for what Rescue would put in the place of one stage's
	// node if it failed now. It fails where that is no splice that boundary
	// states can feed, where there is no room to spare, and under load.
	Standby(n Need, route swarm.Route, stage int) (Standby, error)
	// Widen makes it as large as the need's room, and says whether there was so much
	// to spare.
	Widen(token uint64, n Need) bool
	// Dismiss gives that room back. What was given back already, or spent on a
	// rescue, is left alone.
	Dismiss(token uint64)
}

// A Standby is room for the shadow of one stage. Its holder dismisses it.
type Standby struct {
	Stages  []swarm.Stage   // that would be new on the route, in layer order
	Token   uint64          // the router's own name for the reservation
	Revoked context.Context // ends when the room is wanted for something better
}
