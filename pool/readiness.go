package pool

// Readiness says whether a group can take sessions now. It is recomputed on
// every call and never latched.
type Readiness struct {
	Group string `json:"group"`
	// Known: the desired map has the group.
	Known bool `json:"known"`
	// Ready: at least one family has a living writer that takes sessions, or
	// the fallback is direct and the group is known.
	Ready bool `json:"ready"`
	// Direct: sessions bypass the pool because the fallback says so.
	Direct   bool              `json:"direct,omitempty"`
	Families []FamilyReadiness `json:"families"`
	// Missing names what is not there, for people; empty when every family is
	// at its floor.
	Missing []string `json:"missing,omitempty"`
}

// FamilyReadiness is the readiness of one family of a group.
type FamilyReadiness struct {
	Family    Family `json:"family"`
	Ready     bool   `json:"ready"`
	Living    int    `json:"living"`    // writers that take sessions
	Floor     int    `json:"floor"`     // writers that there should be
	Endpoints int    `json:"endpoints"` // addresses in the desired map
}
