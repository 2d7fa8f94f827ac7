package admin

import (
	"encoding/json"
	"errors"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/keys"
)

const (
	pathPrefix = "/v1/admin/"
	// maxBody holds a model's record with a size for each of a thousand layers.
	maxBody = 256 << 10
	// maxAnswer holds the plan and health of a thousand nodes.
	maxAnswer = 64 << 20
)

var (
	// ErrForbidden: the admin token is missing or wrong.
	ErrForbidden = errors.New("the gateway does not accept this admin token")
	// ErrNotRunning: nobody listens there.
	ErrNotRunning = errors.New("no gateway runs there")
)

// Info says which gateway answers, and whether all is well with planning.
type Info struct {
	Swarm       string   `json:"swarm"`
	Gateway     string   `json:"gateway"`
	Fingerprint string   `json:"fingerprint"` // of the authority, hex
	Join        []string `json:"join"`        // where machines enrol
	Leading     bool     `json:"leading"`     // this gateway plans
	PlanError   string   `json:"plan_error,omitempty"`
	BadReports  uint64   `json:"bad_reports"` // health that was refused
}

// NodeInfo is one node as this gateway sees it.
type NodeInfo struct {
	Record *control.NodeRecord `json:"record"`
	Status string              `json:"status"`
	Since  time.Time           `json:"since"`          // when Status began
	Heard  time.Time           `json:"heard,omitzero"` // newest evidence of life
	Health *control.Health     `json:"health,omitempty"`
}

// TokenRequest asks for a join token; zero fields mean the defaults.
type TokenRequest struct {
	Addresses []string      `json:"addresses,omitempty"`
	Uses      int           `json:"uses,omitempty"`
	Life      time.Duration `json:"life,omitempty"` // nanoseconds
	Note      string        `json:"note,omitempty"`
}

// MadeToken is a new join token with its secret: it cannot be shown again.
type MadeToken struct {
	Token   string    `json:"token"`
	ID      string    `json:"id"`
	Expires time.Time `json:"expires"`
	Uses    int       `json:"uses"`
}

// EngineRequest registers an engine.
type EngineRequest struct {
	Record control.EngineRecord `json:"record"`
	Unseen bool                 `json:"unseen,omitempty"` // though it may not be there yet
}

// MadeKey is a new API key with its secret: it cannot be shown again.
type MadeKey struct {
	Key    string      `json:"key"`
	Record keys.Record `json:"record"`
}

// failure is what a refusal looks like.
type failure struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// codes maps what a caller may act on to its code and status.
var codes = []struct {
	err    error
	code   string
	status int
}{
	{ErrForbidden, "forbidden", 403},
	{control.ErrNotFound, "not_found", 404},
	{keys.ErrUnknown, "not_found", 404},
	{control.ErrConflict, "conflict", 409},
	{control.ErrCatalogue, "catalogue", 409},
	{control.ErrBadName, "bad_request", 400},
	{control.ErrBadDocument, "bad_request", 400},
	{errBadRequest, "bad_request", 400},
}

var errBadRequest = errors.New("bad request")

func encodeFailure(err error) (status int, body []byte) {
	var f failure
	f.Error.Code, f.Error.Message, status = "failed", err.Error(), 500
	for _, c := range codes {
		if errors.Is(err, c.err) {
			f.Error.Code, status = c.code, c.status
			break
		}
	}
	body, marshalErr := json.Marshal(f)
	if marshalErr != nil {
		panic("BUG: a failure that cannot be written as JSON: " + marshalErr.Error())
	}
	return status, body
}

// A remoteError is the gateway's text with our sentinel.
type remoteError struct {
	is   error
	text string
}

func (e *remoteError) Error() string        { return e.text }
func (e *remoteError) Is(target error) bool { return e.is != nil && target == e.is }

func decodeFailure(status int, body []byte) error {
	var f failure
	if json.Unmarshal(body, &f) != nil || f.Error.Code == "" {
		return &remoteError{is: ErrNotRunning, text: "something else than a gateway answers there"}
	}
	for _, c := range codes {
		if c.code == f.Error.Code && c.status == status {
			return &remoteError{is: c.err, text: f.Error.Message}
		}
	}
	return &remoteError{text: f.Error.Message}
}
