package control

import (
	"math"
	"net"
	"strconv"
	"time"

	"hecate/swarm"
)

// Desired is what the operator wants of a node.
type Desired string

const (
	// DesiredActive: serve what the plan gives it.
	DesiredActive Desired = "active"
	// DesiredPaused: finish what runs, take nothing new, keep the layers.
	DesiredPaused Desired = "paused"
	// DesiredDrained: hold nothing, take nothing, stay a member. It empties
	// itself as fast as others take over.
	DesiredDrained Desired = "drained"
	// DesiredEvacuated: the same, and what runs on it moves to others at once.
	DesiredEvacuated Desired = "evacuated"
	// DesiredLeaving: drained, and then removed.
	DesiredLeaving Desired = "leaving"
	// DesiredRemoved: left for good. The record stays as a refusal of the
	// node's key until a new enrolment under that name.
	DesiredRemoved Desired = "removed"
)

func (d Desired) known() bool {
	switch d {
	case DesiredActive, DesiredPaused, DesiredDrained, DesiredEvacuated, DesiredLeaving, DesiredRemoved:
		return true
	}
	return false
}

// planned reports whether the plan may count on a node of which this is
// wanted.
func (d Desired) planned() bool { return d == DesiredActive || d == DesiredPaused }

// A NodeRecord is what the swarm durably knows of a node. It is written by
// gateways only: at enrolment, at each start of the node, and when an operator
// changes what is desired.
type NodeRecord struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	// Key is the SHA-256 of the node's public key (hex, 64 digits): a node is
	// its key.
	Key string `json:"key"`
	// Incarnation counts the starts of the node; 0 means enrolled, but never
	// started. Reports of a lower incarnation are ghosts.
	Incarnation uint64 `json:"incarnation"`
	// Instance is a random name of the process that has this incarnation.
	Instance string `json:"instance,omitempty"`
	// Profile is the planner's input. Its Endpoints are the ip:port addresses
	// of the node's data plane; none when Reverse.
	Profile swarm.NodeProfile `json:"profile"`
	// Reverse: the node cannot be dialled, it connects to the gateway.
	Reverse bool `json:"reverse,omitempty"`
	// Exactness names the class of machines that compute the same bits.
	Exactness string    `json:"exactness,omitempty"`
	Host      string    `json:"host,omitempty"` // host name of the machine
	PID       int       `json:"pid,omitempty"`  // process id on that host
	Desired   Desired   `json:"desired"`
	Joined    time.Time `json:"joined"` // first enrolment
}

func (r *NodeRecord) kind() string  { return "node record" }
func (r *NodeRecord) version() *int { return &r.Version }

// Started reports whether the node ever told its profile.
func (r *NodeRecord) Started() bool { return r.Incarnation > 0 }

// Validate lists everything that is wrong with the record.
func (r *NodeRecord) Validate() error {
	var f faults
	f.add(ValidateNodeName(r.ID))
	f.check(len(r.Key) == 64, "node %q: key fingerprint of %d digits, want 64", r.ID, len(r.Key))
	f.check(r.Desired.known(), "node %q: desired state %q, want active, paused, drained, evacuated, leaving or removed", r.ID, r.Desired)
	f.check(r.PID >= 0, "node %q: pid %d", r.ID, r.PID)
	if r.Started() {
		f.add(ValidateProfile(r.Profile))
		f.check(r.Profile.ID == r.ID, "node %q: profile of %q", r.ID, r.Profile.ID)
		f.check(r.Reverse || len(r.Profile.Endpoints) > 0, "node %q: no endpoint, and not reverse", r.ID)
	}
	return f.join()
}

// maxEndpoints is far above the interfaces of a real machine.
const maxEndpoints = 32

// ValidateProfile checks what a node declares about itself.
func ValidateProfile(p swarm.NodeProfile) error {
	var f faults
	f.add(ValidateNodeName(p.ID))
	f.check(p.MemoryBytes > 0, "node %q: memory of %d bytes", p.ID, p.MemoryBytes)
	f.check(p.Score > 0 && !math.IsInf(p.Score, 0), "node %q: score %v, want a number above 0", p.ID, p.Score)
	f.check(p.LatencyMS >= 0 && !math.IsInf(p.LatencyMS, 0), "node %q: latency %v ms", p.ID, p.LatencyMS)
	f.check(len(p.Endpoints) <= maxEndpoints, "node %q: %d endpoints, at most %d", p.ID, len(p.Endpoints), maxEndpoints)
	for _, e := range p.Endpoints {
		f.check(validEndpoint(e), "node %q: endpoint %q is not ip:port", p.ID, e)
	}
	return f.join()
}

func validEndpoint(e string) bool {
	host, port, err := net.SplitHostPort(e)
	if err != nil || net.ParseIP(host) == nil {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n > 0 && n < 1<<16
}
