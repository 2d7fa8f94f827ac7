package pool

import (
	"fmt"
	"strings"
	"time"
)

// EventKind names what happened.
type EventKind string

// Event is one entry of the typed stream that logs, metrics, dashboards and
// tests listen to. Fields that do not apply are zero.
type Event struct {
	At         time.Time     `json:"at"`
	Kind       EventKind     `json:"kind"`
	Group      string        `json:"group,omitempty"`
	Family     Family        `json:"family,omitempty"`
	Endpoint   string        `json:"endpoint,omitempty"`
	Writer     uint64        `json:"writer,omitempty"`
	Generation uint64        `json:"generation,omitempty"`
	Session    uint64        `json:"session,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	N          int           `json:"n,omitempty"`
	Took       time.Duration `json:"took,omitempty"`
}

// Kinds of events.
const (
	EventMapApplied         EventKind = "map_applied"
	EventWriterUp           EventKind = "writer_up"
	EventWriterLost         EventKind = "writer_lost"
	EventWriterDegraded     EventKind = "writer_degraded"
	EventWriterHealthy      EventKind = "writer_healthy"
	EventWriterDraining     EventKind = "writer_draining"
	EventWriterRemoved      EventKind = "writer_removed"
	EventConnectFailed      EventKind = "connect_failed"
	EventRefused            EventKind = "handshake_refused"
	EventQuarantined        EventKind = "quarantined"
	EventOutage             EventKind = "outage"
	EventOutageOver         EventKind = "outage_over"
	EventGroupDown          EventKind = "group_down"    // the last connection of a group ended, and not by our doing
	EventGroupRefused       EventKind = "group_refused" // ... and new ones are refused
	EventGroupSilent        EventKind = "group_silent"  // ... and new ones are not answered
	EventFloorChanged       EventKind = "floor_changed"
	EventGenerationStarted  EventKind = "generation_started"
	EventGenerationActive   EventKind = "generation_active"
	EventGenerationRefused  EventKind = "generation_refused"
	EventGenerationDropped  EventKind = "generation_dropped"
	EventReplacementStarted EventKind = "replacement_started"
	EventReplacementDone    EventKind = "replacement_done"
	EventReplacementFailed  EventKind = "replacement_failed"
	EventForceClosed        EventKind = "force_closed"
	EventDrainSlow          EventKind = "drain_slow"
	EventSettings           EventKind = "settings_reloaded"
	EventFallback           EventKind = "fallback_changed"
	EventPeerUp             EventKind = "peer_up"   // server: a gateway connected
	EventPeerLost           EventKind = "peer_lost" // server: its connection ended
	EventHandlerPanic       EventKind = "handler_panic"
)

// String is one line for people.
func (e Event) String() string {
	var b strings.Builder
	b.WriteString(string(e.Kind))
	field := func(name string, value any, present bool) {
		if present {
			fmt.Fprintf(&b, " %s=%v", name, value)
		}
	}
	field("group", e.Group, e.Group != "")
	field("family", e.Family, e.Family != "")
	field("endpoint", e.Endpoint, e.Endpoint != "")
	field("writer", e.Writer, e.Writer != 0)
	field("generation", e.Generation, e.Generation != 0)
	field("session", e.Session, e.Session != 0)
	field("n", e.N, e.N != 0)
	field("took", e.Took, e.Took != 0)
	field("reason", fmt.Sprintf("%q", e.Reason), e.Reason != "")
	return b.String()
}
