package weights

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"hecate/internal/control"
	"hecate/internal/control/identity"
)

// PathPrefix is where a Server's handler belongs.
const PathPrefix = "/v1/weights/"

// A Library has pieces: a Store or a Cache.
type Library interface {
	Open(hash, piece string) (*Blob, error)
}

// ServerConfig says who may fetch what.
type ServerConfig struct {
	Library Library
	// Peer names the member that asks, from its certificate, or refuses it.
	Peer func(*http.Request) (string, error)
	// Holders says which nodes have a piece; nil: this is no gateway, and
	// answers no questions.
	Holders func(hash, piece string) []Holder
	// Rate bounds all transfers together, in bytes per second; 0: no bound.
	Rate int64
	// Busy says that answers run here, which transfers must not delay; nil: never.
	Busy func() bool
	Log  *slog.Logger
}

// A Server gives pieces away.
type Server struct {
	cfg   ServerConfig
	limit *rate.Limiter
	desk  Desk
	slots chan struct{}
	mux   *http.ServeMux
	mu    struct {
		sync.Mutex
		served map[pieceKey]int64
	}
}

// NewServer returns the handler for everything below PathPrefix.
func NewServer(cfg ServerConfig) *Server {
	s := &Server{cfg: cfg, limit: limiter(cfg.Rate), slots: make(chan struct{}, maxTransfers), mux: http.NewServeMux()}
	s.mu.served = map[pieceKey]int64{}
	s.mux.HandleFunc("GET "+PathPrefix+"{hash}/{piece}", s.admitted(s.give))
	if cfg.Holders != nil {
		s.mux.HandleFunc("POST "+PathPrefix+"{hash}/next", s.admitted(s.answer))
	}
	return s
}

// limiter bounds bytes per second; nil: no bound.
func limiter(perSecond int64) *rate.Limiter {
	if perSecond <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(perSecond), chunk)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Served is how many bytes left here, by the model's content hash.
func (s *Server) Served() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int64{}
	for k, n := range s.mu.served {
		out[k.hash] += n
	}
	return out
}

// admitted lets members in, and only to what has a proper name.
func (s *Server) admitted(next func(w http.ResponseWriter, r *http.Request, peer string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		peer, err := s.cfg.Peer(r)
		if err != nil {
			s.cfg.Log.Warn("weights refused", "from", r.RemoteAddr, "path", r.URL.Path, "because", err)
			http.Error(w, "weights are for members of this swarm: "+err.Error(), http.StatusForbidden)
			return
		}
		if err := control.ValidateHash(r.PathValue("hash")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := next(w, r, peer); err != nil {
			s.cfg.Log.Warn("weights not given", "to", peer, "path", r.URL.Path, "because", err)
		}
	}
}

// answer tells a node what to take from whom.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, peer string) error {
	var q Question
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxQuestion)).Decode(&q)
	for _, p := range slices.Concat(q.Pieces, q.Then) {
		err = errors.Join(err, control.ValidatePieceName(p))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return err
	}
	hash := r.PathValue("hash")
	here := s.has(hash)
	if !here { // another gateway's model, of which neighbours may have what is asked for
		q.avoidGateway()
	}
	a := s.desk.Assign(peer, hash, q, func(piece string) []Holder { return s.cfg.Holders(hash, piece) })
	if a.Piece == "" && !here {
		http.Error(w, fmt.Sprintf("%s: on no node that lives and can be reached, and the model's file is not at this gateway; start the gateway where it was added, or add the same file here with hecate model add",
			piecesText(q.Pieces)), http.StatusNotFound)
		return nil
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(a)
}

// piecesText names pieces, the first few of them.
func piecesText(pieces []string) string {
	const few = 3
	text := "pieces "
	if len(pieces) == 1 {
		text = "piece "
	}
	text += strings.Join(pieces[:min(few, len(pieces))], ", ")
	if n := len(pieces) - few; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// has says that the model's file is here.
func (s *Server) has(hash string) bool {
	b, err := s.cfg.Library.Open(hash, control.PieceManifest)
	if err == nil {
		_ = b.Close() // it was not read
	}
	return err == nil
}

// give sends a piece, or a range of it.
func (s *Server) give(w http.ResponseWriter, r *http.Request, peer string) error {
	hash, piece := r.PathValue("hash"), r.PathValue("piece")
	if err := control.ValidatePieceName(piece); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return err
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, fmt.Sprintf("%d transfers run already", maxTransfers), http.StatusServiceUnavailable)
		return nil
	}
	blob, err := s.cfg.Library.Open(hash, piece)
	if errors.Is(err, fs.ErrNotExist) {
		http.Error(w, fmt.Sprintf("piece %s of %.12s is not here", piece, hash), http.StatusNotFound)
		return nil
	}
	if err != nil {
		http.Error(w, "the piece cannot be read", http.StatusInternalServerError)
		return err
	}
	defer blob.Close()
	out := &throttled{ResponseWriter: w, control: http.NewResponseController(w), ctx: r.Context(), server: s, key: pieceKey{hash, piece}, peer: peer}
	if conn := identity.ConnOf(r.Context()); conn != nil && crossesLink(conn) {
		bulk(conn)
		out.pace = &pacer{busy: s.busyFor(r), measure: func() (time.Duration, time.Duration, bool) { return roundTripOf(conn) }}
	}
	// The server's own deadlines are for small requests.
	if err := out.control.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(out, r, "", time.Time{}, blob)
	return nil
}

// yieldHeader is how a node asks for a piece at whose end answers run.
const yieldHeader = "Hecate-Yield"

// busyFor says whether answers run here or where a request came from.
func (s *Server) busyFor(r *http.Request) func() bool {
	there := r.Header.Get(yieldHeader) != ""
	return func() bool { return there || s.cfg.Busy != nil && s.cfg.Busy() }
}

// throttled sends no faster than the limit, counts what it sends, and gives the
// receiver time for each chunk only.
type throttled struct {
	http.ResponseWriter
	control *http.ResponseController
	ctx     context.Context
	server  *Server
	key     pieceKey
	peer    string
	pace    *pacer // nil: nothing is known of the connection
}

// next is how many of n bytes may go now; it waits until they may.
func (t *throttled) next(n int) (int, error) {
	k, wait := chunk, time.Duration(0)
	if t.pace != nil {
		k, wait = t.pace.step(time.Now())
	}
	if wait > 0 {
		if err := sleep(t.ctx, wait); err != nil {
			return 0, err
		}
	}
	if k = min(k, n); t.server.limit == nil {
		return k, nil
	}
	return k, t.server.limit.WaitN(t.ctx, k)
}

// Write implements io.Writer. It hides the ReadFrom of what is below, which would
// pass the limit by.
func (t *throttled) Write(b []byte) (n int, err error) {
	for n < len(b) {
		k, err := t.next(len(b) - n)
		if err != nil {
			return n, err
		}
		if err := t.control.SetWriteDeadline(time.Now().Add(stalled)); err != nil {
			return n, err
		}
		got, err := t.ResponseWriter.Write(b[n : n+k])
		n += got
		t.server.count(t.key, t.peer, int64(got))
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

var _ io.Writer = (*throttled)(nil)

func (s *Server) count(key pieceKey, peer string, n int64) {
	s.mu.Lock()
	s.mu.served[key] += n
	s.mu.Unlock()
	s.desk.flows(peer, key.hash, key.piece)
}
