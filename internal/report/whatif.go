package report

import "hecate/swarm"

// WhatIf is GET /v1/swarm/what-if?node=ID.
type WhatIf struct {
	Node    string   `json:"node"`
	Effects []Effect `json:"effects"`
}

// Effect is what a node's death would mean for one model now.
type Effect struct {
	swarm.Effect
	Recovery string `json:"recovery"`          // none, instant, warm load, cold fetch, never
	Already  bool   `json:"already,omitempty"` // the model cannot be asked as it is, whatever happens
}
