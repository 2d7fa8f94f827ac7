package enrol

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/identity"
)

// ServerConfig is what the gateway's side of enrolment works with.
type ServerConfig struct {
	Authority *identity.Authority
	Store     control.Store
	Bus       control.Bus
	// BusServers and Gateways are the addresses, host:port, that members are
	// told; seen is the address of the gateway that the member reached.
	BusServers func(seen net.Addr) []string
	Gateways   func(seen net.Addr) []string
	// BusToken signs what a node's key may do on the control plane.
	BusToken func(node, key string) (string, error)
	BusTrust []byte       // PEM: see Attached
	Log      *slog.Logger // nil: silent
}

// A Server answers enrolment, renewal and attachment. Serve it with the TLS
// configuration of identity.Credentials.OpenServer.
type Server struct {
	cfg    ServerConfig
	tokens *Tokens
	mux    *http.ServeMux
}

// NewServer returns the handler.
func NewServer(cfg ServerConfig) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, tokens: NewTokens(cfg.Store), mux: http.NewServeMux()}
	s.mux.HandleFunc("POST "+pathEnrol, handle(s, s.enrol))
	s.mux.HandleFunc("POST "+pathRenew, handle(s, s.renew))
	s.mux.HandleFunc("POST "+pathAttach, handle(s, s.attach))
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// handle decodes a request, and encodes what the step answers or why it
// refuses.
func handle[In, Out any](s *Server, step func(*http.Request, In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var in In
		var out Out
		err := decodeBody(w, r, &in)
		if err == nil {
			out, err = step(r, in)
		}
		if err != nil {
			s.cfg.Log.Warn("refused", "request", r.URL.Path, "from", r.RemoteAddr, "reason", err)
			status, body := encodeRefusal(err)
			w.WriteHeader(status)
			_, _ = w.Write(body) // the client may be gone
			return
		}
		_ = json.NewEncoder(w).Encode(out) // likewise
	}
}

func decodeBody(w http.ResponseWriter, r *http.Request, into any) error {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBad, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %w", ErrBad, err)
	}
	return nil
}

// A claimant has proved that it has a key, and says how it is called.
type claimant struct {
	name   string
	key    string // fingerprint
	public any
}

// check verifies everything about a request that needs no store.
func (in enrolRequest) check() (claimant, error) {
	if in.Version != protocolVersion {
		return claimant{}, fmt.Errorf("%w: protocol version %d, this gateway speaks %d: update the older program", ErrBad, in.Version, protocolVersion)
	}
	if err := clockFault(in.Time, time.Now()); err != nil {
		return claimant{}, err
	}
	if err := control.ValidateNodeName(in.Name); err != nil {
		return claimant{}, fmt.Errorf("%w: %w", ErrBad, err)
	}
	csr, err := x509.ParseCertificateRequest(in.CSR)
	if err == nil {
		err = csr.CheckSignature()
	}
	if err != nil {
		return claimant{}, fmt.Errorf("%w: certificate request: %w", ErrBad, err)
	}
	key, err := identity.KeyFingerprint(csr.PublicKey)
	if err != nil {
		return claimant{}, fmt.Errorf("%w: %w", ErrBad, err)
	}
	return claimant{name: in.Name, key: key, public: csr.PublicKey}, nil
}

// enrol lets a new machine in, for one use of a token. A machine that is in
// already gets a new certificate and uses nothing.
func (s *Server) enrol(r *http.Request, in enrolRequest) (enrolReply, error) {
	who, err := in.check()
	if err != nil {
		return enrolReply{}, err
	}
	ctx := r.Context()
	rec, revision, err := s.place(ctx, who)
	if err != nil {
		return enrolReply{}, err
	}
	if rec.Key != who.key || rec.Desired == control.DesiredRemoved {
		if err := s.tokens.spend(ctx, in.Secret, who.key); err != nil {
			return enrolReply{}, err
		}
		rec.Key, rec.Desired, rec.Joined = who.key, control.DesiredActive, time.Now().UTC()
		if err := s.put(ctx, rec, revision); err != nil {
			return enrolReply{}, err
		}
		if err := s.tokens.settle(ctx, in.Secret, who.key); err != nil {
			s.cfg.Log.Warn("a token still knows the machine that it let in", "node", who.name, "error", err)
		}
		s.cfg.Log.Info("enrolled", "node", who.name, "from", r.RemoteAddr)
	}
	return s.certify(r, who)
}

// place finds the record that a claimant may have: its own, that of a removed
// node of the name, or a new one (revision 0).
func (s *Server) place(ctx context.Context, who claimant) (*control.NodeRecord, uint64, error) {
	entries, err := s.cfg.Store.List(ctx, control.BucketNodes)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrGateway, err)
	}
	rec, revision := &control.NodeRecord{ID: who.name}, uint64(0)
	for _, e := range entries {
		other := new(control.NodeRecord)
		if err := control.Decode(e.Value, other); err != nil {
			s.cfg.Log.Warn("unreadable node record", "key", e.Key, "error", err)
			continue
		}
		switch {
		case other.ID == who.name:
			if other.Key != who.key && other.Desired != control.DesiredRemoved {
				return nil, 0, fmt.Errorf("%w: %q; choose another with --name, or remove that node first", ErrNameTaken, who.name)
			}
			rec, revision = other, e.Revision
		case other.Key == who.key && other.Desired != control.DesiredRemoved:
			return nil, 0, fmt.Errorf("%w: %q; start it under that name, or with a data folder of its own", ErrKeyTaken, other.ID)
		}
	}
	return rec, revision, nil
}

func (s *Server) put(ctx context.Context, rec *control.NodeRecord, revision uint64) error {
	data, err := control.Encode(rec)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBad, err)
	}
	if revision == 0 {
		_, err = s.cfg.Store.Create(ctx, control.BucketNodes, rec.ID, data)
	} else {
		_, err = s.cfg.Store.CompareAndSet(ctx, control.BucketNodes, rec.ID, data, revision)
	}
	if err != nil {
		return fmt.Errorf("%w: recording node %s: %w", ErrGateway, rec.ID, err)
	}
	return nil
}

// renew certifies a key that is enrolled. Its signature is the credential: the
// certificate may have expired while the machine was off.
func (s *Server) renew(r *http.Request, in enrolRequest) (enrolReply, error) {
	who, err := in.check()
	if err != nil {
		return enrolReply{}, err
	}
	if _, _, err := s.member(r.Context(), who.name, who.key); err != nil {
		return enrolReply{}, err
	}
	return s.certify(r, who)
}

// member finds the record of an enrolled node.
func (s *Server) member(ctx context.Context, name, key string) (*control.NodeRecord, uint64, error) {
	e, err := s.cfg.Store.Get(ctx, control.BucketNodes, name)
	if errors.Is(err, control.ErrNotFound) {
		return nil, 0, fmt.Errorf("%w: %q; join it with a token", ErrUnknown, name)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrGateway, err)
	}
	rec := new(control.NodeRecord)
	if err := control.Decode(e.Value, rec); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrGateway, err)
	}
	switch {
	case rec.Key != key:
		return nil, 0, fmt.Errorf("%w: %q has another key", ErrUnknown, name)
	case rec.Desired == control.DesiredRemoved:
		return nil, 0, fmt.Errorf("%w: %q; if it is to come back, join it anew with a new token: hecate token create", ErrRemoved, name)
	}
	return rec, e.Revision, nil
}

func (s *Server) certify(r *http.Request, who claimant) (enrolReply, error) {
	chain, err := s.cfg.Authority.Issue(identity.RoleNode, who.name, who.public)
	if err != nil {
		return enrolReply{}, fmt.Errorf("%w: %w", ErrBad, err)
	}
	return enrolReply{Certificates: identity.EncodeCertificates(chain...), Gateways: s.cfg.Gateways(seen(r))}, nil
}

// seen is our own address as the client reached it.
func seen(r *http.Request) net.Addr {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return addr
}
