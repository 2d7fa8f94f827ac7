package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"hecate/internal/control"
	"hecate/internal/control/doctor"
	"hecate/internal/control/enrol"
	"hecate/internal/control/keys"
	"hecate/swarm"
)

// A Gateway is what administration works on.
type Gateway interface {
	Info() Info
	Store() control.Store
	Membership() *control.Membership
	Tokens() *enrol.Tokens
	CreateToken(context.Context, enrol.TokenOptions) (enrol.Token, error)
	// Reach tries what this gateway can reach of the nodes.
	Reach(context.Context) ([]doctor.Finding, error)
	// Engines are those of this gateway's API; nil until it runs.
	Engines() Engines
}

// Engines is what the API's side of a gateway knows of whole-model engines.
type Engines interface {
	// Probe looks at an engine that is about to be registered.
	Probe(context.Context, control.EngineRecord) (control.EngineView, error)
	// Views tells how each registered engine is.
	Views() []control.EngineView
}

// A Server answers an operator's commands.
type Server struct {
	gateway Gateway
	hash    [sha256.Size]byte // of the admin token
	log     *slog.Logger
	mux     *http.ServeMux
}

// routes are all there are; their paths are below pathPrefix.
var routes = []struct {
	method, path string
	step         func(*Server, *http.Request) (any, error)
}{
	{"GET", "info", (*Server).info},
	{"GET", "nodes", (*Server).nodes},
	{"POST", "nodes/{id}/{action}", (*Server).steer},
	{"GET", "plan", (*Server).plan},
	{"GET", "what-if/{id}", (*Server).whatIf},
	{"GET", "reach", (*Server).reach},
	{"GET", "tokens", (*Server).listTokens},
	{"POST", "tokens", (*Server).makeToken},
	{"DELETE", "tokens/{id}", (*Server).revokeToken},
	{"GET", "keys", (*Server).listKeys},
	{"POST", "keys", (*Server).makeKey},
	{"DELETE", "keys/{id}", (*Server).revokeKey},
	{"GET", "engines", (*Server).engines},
	{"POST", "engines", (*Server).putEngine},
	{"DELETE", "engines/{id}", (*Server).removeEngine},
	{"GET", "models", (*Server).models},
	{"POST", "models", (*Server).putModel},
	{"DELETE", "models/{id}", (*Server).removeModel},
}

// Routes lists "METHOD path" of all routes, in the syntax of http.ServeMux.
func Routes() (out []string) {
	for _, r := range routes {
		out = append(out, r.method+" "+pathPrefix+r.path)
	}
	return out
}

// NewServer returns the handler for everything below /v1/admin/.
func NewServer(g Gateway, token string, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{gateway: g, hash: sha256.Sum256([]byte(token)), log: log, mux: http.NewServeMux()}
	for _, r := range routes {
		s.route(r.method, r.path, func(req *http.Request) (any, error) { return r.step(s, req) })
	}
	return s
}

// route registers a step; its result is answered as JSON.
func (s *Server) route(method, path string, step func(*http.Request) (any, error)) {
	s.mux.HandleFunc(method+" "+pathPrefix+path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		result, err := step(r)
		if err != nil {
			status, body := encodeFailure(err)
			w.WriteHeader(status)
			_, _ = w.Write(body) // the client may be gone
			return
		}
		if r.Method != http.MethodGet {
			s.log.Info("administration", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr)
		}
		_ = json.NewEncoder(w).Encode(result) // likewise
	})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.admit(r); err != nil {
		s.log.Warn("administration refused", "path", r.URL.Path, "from", r.RemoteAddr)
		w.Header().Set("Content-Type", "application/json")
		status, body := encodeFailure(err)
		w.WriteHeader(status)
		_, _ = w.Write(body)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// admit wants the admin token, and no browser.
func (s *Server) admit(r *http.Request) error {
	const scheme = "Bearer "
	given := r.Header.Get("Authorization")
	if len(given) < len(scheme) || given[:len(scheme)] != scheme || r.Header.Get("Origin") != "" || !s.Holds(given[len(scheme):]) {
		return ErrForbidden
	}
	return nil
}

// Holds says that a token is the admin token, in a time that does not tell how
// much of it is right.
func (s *Server) Holds(token string) bool {
	hash := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(hash[:], s.hash[:]) == 1
}

func decode(r *http.Request, into any) error {
	data, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errBadRequest, err)
	}
	return nil
}

func (s *Server) info(*http.Request) (any, error) { return s.gateway.Info(), nil }

func (s *Server) nodes(*http.Request) (any, error) {
	out := []NodeInfo{}
	for _, m := range s.gateway.Membership().View().Members {
		if m.Record != nil {
			out = append(out, NodeInfo{Record: m.Record, Status: m.Status.String(), Since: m.Since, Heard: m.Heard, Health: m.Health})
		}
	}
	return out, nil
}

// actions are what can be wanted of a node.
var actions = map[string]control.Desired{
	"pause": control.DesiredPaused, "resume": control.DesiredActive, "drain": control.DesiredDrained,
	"evacuate": control.DesiredEvacuated, "remove": control.DesiredLeaving, "expel": control.DesiredRemoved,
}

func (s *Server) steer(r *http.Request) (any, error) {
	id := r.PathValue("id")
	if err := control.ValidateNodeName(id); err != nil {
		return nil, err
	}
	want, ok := actions[r.PathValue("action")]
	if !ok {
		return nil, fmt.Errorf("%w: no action %q", errBadRequest, r.PathValue("action"))
	}
	return struct{}{}, control.SetDesired(r.Context(), s.gateway.Store(), id, want)
}

func (s *Server) plan(r *http.Request) (any, error) { return s.currentPlan(r.Context()) }

func (s *Server) currentPlan(ctx context.Context) (*control.PlanDocument, error) {
	e, err := s.gateway.Store().Get(ctx, control.BucketPlan, control.PlanKey)
	if err != nil {
		return nil, fmt.Errorf("there is no plan yet: %w", err)
	}
	d := new(control.PlanDocument)
	return d, control.Decode(e.Value, d)
}

func (s *Server) whatIf(r *http.Request) (any, error) {
	d, err := s.currentPlan(r.Context())
	if err != nil {
		return nil, err
	}
	effects, err := d.Plan.WhatIf(r.PathValue("id"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadRequest, err)
	}
	if effects == nil {
		effects = []swarm.Effect{}
	}
	return effects, nil
}

func (s *Server) reach(r *http.Request) (any, error) { return orEmpty(s.gateway.Reach(r.Context())) }

func (s *Server) listTokens(r *http.Request) (any, error) {
	return orEmpty(s.gateway.Tokens().List(r.Context()))
}

func (s *Server) makeToken(r *http.Request) (any, error) {
	var in TokenRequest
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	t, err := s.gateway.CreateToken(r.Context(), enrol.TokenOptions{Addresses: in.Addresses, Uses: in.Uses, Life: in.Life, Note: in.Note})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadRequest, err)
	}
	return MadeToken{Token: t.Encode(), ID: t.ID(), Expires: t.Expires, Uses: t.Uses}, nil
}

func (s *Server) revokeToken(r *http.Request) (any, error) {
	return struct{}{}, s.gateway.Tokens().Revoke(r.Context(), r.PathValue("id"))
}

func (s *Server) listKeys(r *http.Request) (any, error) {
	return orEmpty(keys.List(r.Context(), s.gateway.Store()))
}

func (s *Server) makeKey(r *http.Request) (any, error) {
	var in keys.Options
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	key, rec, err := keys.Create(r.Context(), s.gateway.Store(), in)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadRequest, err)
	}
	return MadeKey{Key: key, Record: rec}, nil
}

func (s *Server) revokeKey(r *http.Request) (any, error) {
	return struct{}{}, keys.Revoke(r.Context(), s.gateway.Store(), r.PathValue("id"))
}

func (s *Server) models(r *http.Request) (any, error) {
	return orEmpty(control.Models(r.Context(), s.gateway.Store()))
}

func (s *Server) putModel(r *http.Request) (any, error) {
	rec := new(control.ModelRecord)
	if err := decode(r, rec); err != nil {
		return nil, err
	}
	return struct{}{}, control.AddModel(r.Context(), s.gateway.Store(), rec)
}

func (s *Server) removeModel(r *http.Request) (any, error) {
	return struct{}{}, control.WithdrawModel(r.Context(), s.gateway.Store(), r.PathValue("id"))
}

// engines lists what is registered, each as this gateway sees it.
func (s *Server) engines(r *http.Request) (any, error) {
	records, err := control.Engines(r.Context(), s.gateway.Store())
	if err != nil {
		return nil, err
	}
	seen := map[string]control.EngineView{}
	if e := s.gateway.Engines(); e != nil {
		for _, v := range e.Views() {
			seen[v.Record.ID] = v
		}
	}
	out := make([]control.EngineView, 0, len(records))
	for _, rec := range records {
		v, ok := seen[rec.ID]
		if !ok {
			v = control.EngineView{State: "starting"}
		}
		v.Record = *rec
		out = append(out, v)
	}
	control.SortEngines(out)
	return out, nil
}

// putEngine registers an engine once it was seen, or at once when that is wanted.
func (s *Server) putEngine(r *http.Request) (any, error) {
	var in EngineRequest
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if _, err := control.Encode(&in.Record); err != nil {
		return nil, err
	}
	view := control.EngineView{Record: in.Record, State: "starting"}
	e := s.gateway.Engines()
	switch {
	case in.Unseen:
	case e == nil:
		return nil, errors.New("this gateway's API does not run yet")
	default:
		var err error
		if view, err = e.Probe(r.Context(), in.Record); err != nil {
			return nil, fmt.Errorf("%w: engine %q: %w; --unseen registers it nevertheless", errBadRequest, in.Record.ID, err)
		}
	}
	return view, control.PutEngine(r.Context(), s.gateway.Store(), &in.Record)
}

func (s *Server) removeEngine(r *http.Request) (any, error) {
	return struct{}{}, control.RemoveEngine(r.Context(), s.gateway.Store(), r.PathValue("id"))
}

// orEmpty makes "none" an empty list in JSON.
func orEmpty[T any](list []T, err error) ([]T, error) {
	if list == nil {
		list = []T{}
	}
	return list, err
}
