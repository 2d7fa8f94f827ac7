package control

import (
	"time"
)

// A RoomClaim is what one gateway tells the others of its answers of one model, so
// that they make room for one another by the same order as within a gateway: who
// began first goes first. Times are the gateway's own clock; where clocks differ,
// the order is unfair by as much, and still one order.
type RoomClaim struct {
	Model string `json:"model"`
	// Oldest is when the answer began that has begun first among those that want
	// room and have none; zero: none does.
	Oldest time.Time `json:"oldest,omitzero"`
	// Holds says that the oldest runs, and keeps what it has for a moment; else it has
	// given all back, and waits.
	Holds bool `json:"holds,omitempty"`
	// Missing is how many cells the oldest lacks, by node, that younger answers of
	// another gateway are to give; empty: none are.
	Missing map[string]int `json:"missing,omitempty"`
	// Youngest is when the answer began that has begun last among those that hold
	// room; zero: none does.
	Youngest time.Time `json:"youngest,omitzero"`
	// Growth is what answers that hold room will ask for as they get longer, by node.
	Growth map[string]RoomGrowth `json:"growth,omitempty"`
}

// RoomGrowth is how many more cells of one node answers will ask for next.
type RoomGrowth struct {
	Most int `json:"most"` // the one that asks for most; > 0
	All  int `json:"all"`  // all of them together; >= Most
}

// RoomClaims are all claims of one gateway. It says them on change, and each second
// while there are any: nothing depends on one message.
type RoomClaims struct {
	Version int         `json:"version"`
	Gateway string      `json:"gateway"`
	Claims  []RoomClaim `json:"claims"`
}

func (c *RoomClaims) kind() string  { return "room claims" }
func (c *RoomClaims) version() *int { return &c.Version }

// maxClaims bounds the models of one gateway that claims are about.
const maxClaims = 1024

// Validate lists everything that is wrong with the claims.
func (c *RoomClaims) Validate() error {
	var f faults
	f.add(ValidateNodeName(c.Gateway))
	f.check(len(c.Claims) <= maxClaims, "%d claims of gateway %q, at most %d", len(c.Claims), c.Gateway, maxClaims)
	for _, claim := range c.Claims {
		f.add(ValidateModelName(claim.Model))
		for node, cells := range claim.Missing {
			f.add(ValidateNodeName(node))
			f.check(cells > 0, "%d cells are missing on %s", cells, node)
		}
		for node, g := range claim.Growth {
			f.add(ValidateNodeName(node))
			f.check(g.Most > 0 && g.All >= g.Most, "growth by %d, %d of them by one, on %s", g.All, g.Most, node)
		}
	}
	return f.join()
}

// ClaimsSubject is where a gateway says its RoomClaims.
func ClaimsSubject(gateway string) string {
	return subjectRoot + ".gateway." + EscapeElement(gateway) + ".claims"
}

// AllClaims is the pattern of every gateway's claims.
const AllClaims = subjectRoot + ".gateway.*.claims"
