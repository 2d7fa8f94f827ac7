package enrol

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/identity"
	"hecate/swarm"
)

// The endpoint's paths, each a POST of JSON.
const (
	pathEnrol  = "/v1/enrol"
	pathRenew  = "/v1/renew"
	pathAttach = "/v1/attach"
)

const (
	protocolVersion = 1
	// maxBody holds a certificate request or a profile with every interface.
	maxBody = 64 << 10
	// maxSkew is how far two clocks may differ: the same slack certificates
	// have, halved, so that what passes here works there.
	maxSkew = 5 * time.Minute
)

// Refusals that a program may act on. Each travels as a code.
var (
	ErrNameTaken = errors.New("another machine has this name")
	ErrKeyTaken  = errors.New("this machine is enrolled under another name")
	ErrRemoved   = errors.New("this node was removed from the swarm")
	ErrUnknown   = errors.New("the swarm does not know this node")
	ErrDuplicate = errors.New("another process has this node's key")
	ErrClock     = identity.ErrClock
	ErrBad       = errors.New("bad request")
	// ErrGateway: the gateway could not do it now; trying again may help.
	ErrGateway = errors.New("the gateway could not do it")
)

// refusals maps what is refused to its code and HTTP status.
var refusals = []struct {
	err    error
	code   string
	status int
}{
	{ErrTokenUnknown, "token_unknown", http.StatusForbidden},
	{ErrTokenExpired, "token_expired", http.StatusForbidden},
	{ErrTokenUsedUp, "token_used_up", http.StatusForbidden},
	{ErrNameTaken, "name_taken", http.StatusConflict},
	{ErrKeyTaken, "key_taken", http.StatusConflict},
	{ErrRemoved, "removed", http.StatusForbidden},
	{ErrUnknown, "unknown_node", http.StatusForbidden},
	{ErrDuplicate, "duplicate", http.StatusConflict},
	{ErrClock, "clock", http.StatusBadRequest},
	{ErrBad, "bad_request", http.StatusBadRequest},
	{ErrGateway, "gateway", http.StatusServiceUnavailable},
}

type enrolRequest struct {
	Version int       `json:"version"`
	Secret  []byte    `json:"secret,omitempty"` // of the token; none for a renewal
	Name    string    `json:"name"`
	CSR     []byte    `json:"csr"` // DER: its signature proves that we have the key
	Time    time.Time `json:"time"`
}

type enrolReply struct {
	Certificates []byte   `json:"certificates"` // PEM: leaf, authority
	Gateways     []string `json:"gateways"`     // enrolment endpoints, host:port
}

// An AttachRequest is what a node says of itself when it starts, and whenever
// that changes.
type AttachRequest struct {
	// Instance is a random name of the process: the same one keeps its
	// incarnation.
	Instance string `json:"instance"`
	// Profile is the planner's input. An endpoint whose address is unspecified
	// ("0.0.0.0:7000") stands for the address the gateway sees.
	Profile   swarm.NodeProfile `json:"profile"`
	Reverse   bool              `json:"reverse,omitempty"`
	Exactness string            `json:"exactness,omitempty"`
	Host      string            `json:"host"`
	PID       int               `json:"pid"`
	// BusKey is the process's public key on the control plane (U...).
	BusKey string `json:"bus_key"`
}

// Attached is what a node needs to work.
type Attached struct {
	Incarnation uint64          `json:"incarnation"`
	Desired     control.Desired `json:"desired"`
	Bus         []string        `json:"bus"`                 // the control plane's servers, host:port
	BusToken    string          `json:"bus_token"`           // what BusKey may do there, for about a day
	BusTrust    []byte          `json:"bus_trust,omitempty"` // PEM: the servers' authority, when it is not the swarm's
	Gateways    []string        `json:"gateways"`            // enrolment endpoints, host:port
	Observed    string          `json:"observed"`            // the node's address as the gateway sees it
	Time        time.Time       `json:"time"`                // by the gateway's clock, just now
}

// clockFault compares two clocks; an ErrClock when they differ too much for
// certificates.
func clockFault(node, gateway time.Time) error {
	if node.Sub(gateway).Abs() <= maxSkew {
		return nil
	}
	return fmt.Errorf("%w: the node's says %s, the gateway's %s: set the clock that is wrong",
		ErrClock, node.UTC().Format(time.RFC3339), gateway.UTC().Format(time.RFC3339))
}

// ClockFault is an ErrClock when this machine's clock is not the gateway's: all
// works until the certificate is to be renewed.
func (a Attached) ClockFault() error { return clockFault(time.Now(), a.Time) }

type refusal struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// encodeRefusal finds the code and status of an error.
func encodeRefusal(err error) (status int, body []byte) {
	code, status := "gateway", http.StatusServiceUnavailable
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			code, status = r.code, r.status
			break
		}
	}
	var out refusal
	out.Error.Code, out.Error.Message = code, err.Error()
	body, marshalErr := json.Marshal(out)
	if marshalErr != nil {
		panic("BUG: a refusal that cannot be written as JSON: " + marshalErr.Error())
	}
	return status, body
}

// decodeRefusal makes an answer that is not 200 an error again.
func decodeRefusal(status int, body []byte) error {
	var in refusal
	if json.Unmarshal(body, &in) != nil || in.Error.Code == "" {
		return fmt.Errorf("%w: it answered %d: is that a gateway of this program?", ErrGateway, status)
	}
	for _, r := range refusals {
		if r.code == in.Error.Code {
			return &refusedError{is: r.err, text: in.Error.Message}
		}
	}
	return fmt.Errorf("%w: %s", ErrGateway, in.Error.Message)
}

// A refusedError is the gateway's text with our sentinel.
type refusedError struct {
	is   error
	text string
}

func (e *refusedError) Error() string        { return e.text }
func (e *refusedError) Is(target error) bool { return target == e.is }
