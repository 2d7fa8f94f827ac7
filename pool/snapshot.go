package pool

import "time"

// Snapshot is everything that is visible of a pool at one moment. Counters
// grow from 0 at New and never fall; sums are over owners, so a writer that is
// gone keeps its part in them.
type Snapshot struct {
	At         time.Time          `json:"at"`
	Closed     bool               `json:"closed,omitempty"`
	Settings   Settings           `json:"settings"`
	Generation GenerationSnapshot `json:"generation"`
	Groups     []GroupSnapshot    `json:"groups"`  // sorted by group, then family
	Writers    []WriterSnapshot   `json:"writers"` // sorted by id

	SessionsOpen   int               `json:"sessions_open"`
	SessionsOpened uint64            `json:"sessions_opened"`
	SessionsClosed map[string]uint64 `json:"sessions_closed"` // by reason
	OpenFailures   map[string]uint64 `json:"open_failures"`   // by reason
	Drops          map[string]uint64 `json:"drops"`           // frames, by reason
	WriterLosses   map[string]uint64 `json:"writer_losses"`   // by reason
	Commits        map[string]uint64 `json:"commits"`         // generations, by outcome
	Replacements   map[string]uint64 `json:"replacements"`    // by outcome
	Connects       map[string]uint64 `json:"connects"`        // tries by outcome
	ForceCloses    map[string]uint64 `json:"force_closes"`    // by cause
	Probes         map[string]uint64 `json:"probes"`          // of suspected groups, by outcome

	PingsSent      uint64 `json:"pings_sent"`
	PingsMissed    uint64 `json:"pings_missed"`
	FramesSent     uint64 `json:"frames_sent"`
	FramesReceived uint64 `json:"frames_received"`
	BytesSent      uint64 `json:"bytes_sent"`     // payload
	BytesReceived  uint64 `json:"bytes_received"` // payload
	BufferedBytes  int64  `json:"buffered_bytes"` // queued in either direction now
	DirectOpen     int    `json:"direct_open"`    // fallback connections now
}

// GenerationSnapshot describes the coordinator.
type GenerationSnapshot struct {
	Active        uint64        `json:"active"`
	ActiveAge     time.Duration `json:"active_age_ns"`
	Pending       uint64        `json:"pending,omitempty"`
	PendingAge    time.Duration `json:"pending_age_ns,omitempty"`
	MapHash       string        `json:"map_hash"`       // of the desired map
	MapRevision   uint64        `json:"map_revision"`   // of the desired map
	MapCurrent    bool          `json:"map_current"`    // the active generation is of the desired map
	WriterDeficit int           `json:"writer_deficit"` // writers that the pending generation still lacks
	Missing       []string      `json:"missing,omitempty"`
	Orphans       int           `json:"orphans"` // living writers whose endpoint nobody wants
}

// GroupSnapshot is one group and family.
type GroupSnapshot struct {
	Group        string            `json:"group"`
	Family       Family            `json:"family"`
	Endpoints    int               `json:"endpoints"`
	Contours     map[string]uint64 `json:"contours"` // writers by contour
	Health       map[string]uint64 `json:"health"`   // writers by health
	FloorTarget  int               `json:"floor_target"`
	FloorCurrent int               `json:"floor_current"`
	Demand       int               `json:"refill_demand"`
	Dialing      int               `json:"dialing"`
	Tries        uint64            `json:"refill_tries"`
	Failures     uint64            `json:"refill_failures"`
	Losses       int               `json:"losses_unrestored"`
	Quarantined  int               `json:"quarantined"` // endpoints
	Outage       bool              `json:"outage,omitempty"`
	Sessions     int               `json:"sessions"`
	Ready        bool              `json:"ready"`
}

// WriterSnapshot is one connection.
type WriterSnapshot struct {
	ID          uint64        `json:"id"`
	Group       string        `json:"group"`
	Family      Family        `json:"family"`
	Endpoint    string        `json:"endpoint"`
	Generation  uint64        `json:"generation"`
	Contour     string        `json:"contour"`
	Replacement string        `json:"replacement"`
	Health      string        `json:"health"`
	Age         time.Duration `json:"age_ns"`
	Idle        time.Duration `json:"idle_ns"` // since the last session left; 0 while there are some
	Sessions    int           `json:"sessions"`
	QueueFrames int           `json:"queue_frames"`
	QueueBytes  int           `json:"queue_bytes"`
	RoundTrip   time.Duration `json:"round_trip_ns"` // smoothed; 0 before the first answer
	DrainAge    time.Duration `json:"drain_age_ns,omitempty"`
	Stale       bool          `json:"stale,omitempty"`
}
