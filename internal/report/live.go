package report

import (
	"encoding/json"
	"time"
)

// Frame is one `frame` event of GET /v1/swarm/live. The first one of a stream is
// full; later ones hold the parts that changed, and null for those that are
// gone. The parts are, by name:
//
//	swarm         Swarm
//	answers       Answers
//	node/ID       LiveNode
//	model/ID      Model
//	pool          LivePool
//	flows         []Flow
//	pulse         Pulse    of the last second; absent parts stay as they were
//
// Beside frames the stream carries `history` once ([]Pulse, oldest first, one a
// second, the newest just now) and an `event` for each event, with its id.
type Frame struct {
	Revision uint64                     `json:"rev"`
	Full     bool                       `json:"full,omitempty"`
	Parts    map[string]json.RawMessage `json:"parts"`
}

// Swarm is what is neither a node's nor a model's.
type Swarm struct {
	State      string    `json:"state"`         // healthy, degraded, failed
	Why        []string  `json:"why,omitempty"` // what is missing for healthy
	Gateway    string    `json:"gateway"`
	Version    string    `json:"version"`
	Generation uint64    `json:"generation"` // of the plan
	Chaos      bool      `json:"chaos"`      // failures may be rehearsed
	Links      bool      `json:"links"`      // and also at the links to single nodes
	Keys       bool      `json:"keys"`       // the API wants a key
	Started    time.Time `json:"started"`
}

// LiveNode is a node with what changes from second to second.
type LiveNode struct {
	Node
	Status          string    `json:"status"`            // alive, suspect, dead, ...
	Since           time.Time `json:"since"`             // when Status began
	TokensPerSecond float64   `json:"tokens_per_second"` // computed through its layers
	Link            string    `json:"link,omitempty"`    // the fault that was put on its link, "" for none
}

// Flow is a route and how many answers run over it.
type Flow struct {
	Model  string      `json:"model"`
	Stages []FlowStage `json:"stages"`
	Count  int         `json:"count"` // the most at once since the last frame
}

// FlowStage is one node's part of a flow.
type FlowStage struct {
	Node  string `json:"node"`
	First int    `json:"first"`
	Last  int    `json:"last"`
}

// LivePool is the data plane in short; all of it is at GET /v1/pool.
type LivePool struct {
	Generation    uint64      `json:"generation"` // the active one
	Activated     time.Time   `json:"activated"`
	Pending       uint64      `json:"pending,omitempty"` // in warm-up
	MapCurrent    bool        `json:"map_current"`
	WriterDeficit int         `json:"writer_deficit"`
	Groups        []LiveGroup `json:"groups"`
	Sessions      int         `json:"sessions"`
	Losses        uint64      `json:"losses"` // writers that ended against our will
	Drops         uint64      `json:"drops"`  // frames
	Buffered      int64       `json:"buffered_bytes"`
}

// LiveGroup is the connections to one node.
type LiveGroup struct {
	Node     string `json:"node"`
	Writers  int    `json:"writers"` // that take sessions
	Floor    int    `json:"floor"`   // how many there should be
	Draining int    `json:"draining"`
	Dialing  int    `json:"dialing"`
	Sessions int    `json:"sessions"`
	Ready    bool   `json:"ready"`
	Outage   bool   `json:"outage,omitempty"`
}

// Pulse is one second.
type Pulse struct {
	TokensPerSecond float64  `json:"tokens_per_second"` // that clients were sent
	FirstTokenMS    *float64 `json:"first_token_ms"`    // median of the answers that finished; null: none did
	GapMS           *float64 `json:"gap_ms"`            // longest pause that was survived; null: none
	Running         int      `json:"running"`
	Queued          int      `json:"queued"`
}
