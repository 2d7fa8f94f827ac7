package engines

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"hecate/internal/control"
	"hecate/swarm"
)

// engine is one registered engine. Engines.mu guards what changes; the rest is set
// once: a changed record makes a new engine.
type engine struct {
	rec    control.EngineRecord
	base   *url.URL
	client *http.Transport
	log    *slog.Logger
	stop   context.CancelFunc // ends its looks

	state   state
	problem string          // what the last look found, for people
	alive   context.Context // ends when it is found dead
	die     context.CancelCauseFunc
	models  []string // its own names, sorted
	resumes map[string]bool

	circuit  swarm.Circuit
	paused   time.Time // until then it wants to be left alone
	measures measures
	running  int
	spoke    bool         // it has answered a look while it computed
	heard    atomic.Int64 // when bytes of an answer came, Unix nanoseconds
	requests int64
	failures map[Kind]int64
}

// state of an engine.
//
//	starting --a look succeeds--> up --connections refused, or looks fail--> down --a look succeeds--> up
type state int

const (
	starting state = iota // nobody has seen it yet; not used
	up                    // the last look succeeded, or at least did not fail for long
	down                  // it is not used, and what waits there for content moves
)

func (s state) String() string { return [...]string{"starting", "up", "down"}[s] }

// Limits of connections to engines, each with what it is there against.
const (
	connectTime = 3 * time.Second // an address where nobody is
	idleTime    = 90 * time.Second
	idleConns   = 256      // connections of a burst that nobody needs any more
	maxHeader   = 64 << 10 // an engine that never ends its headers
	readBuffer  = 32 << 10
	writeBuffer = 32 << 10
	tlsTime     = 5 * time.Second
)

func newEngine(rec control.EngineRecord, log *slog.Logger) (*engine, error) {
	base, err := url.Parse(rec.URL)
	if err != nil {
		return nil, errors.New("its URL cannot be read")
	}
	e := &engine{rec: rec, base: base, log: log.With("engine", rec.ID), failures: map[Kind]int64{}}
	e.alive, e.die = context.WithCancelCause(context.Background())
	e.client = newTransport()
	return e, nil
}

// newTransport has the habits of http.DefaultTransport, but for what must not happen
// here: nothing is decompressed, and HTTP/2 stays off, where one stalled stream could
// hold up its neighbours.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, DisableCompression: true,
		MaxIdleConnsPerHost: idleConns, MaxIdleConns: idleConns, IdleConnTimeout: idleTime,
		TLSHandshakeTimeout: tlsTime, MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize: readBuffer, WriteBufferSize: writeBuffer,
	}
}

// serves gives the engine's own name of a model, "" when it has none of that name.
func (e *engine) serves(name string) string {
	if own, ok := e.rec.Aliases[name]; ok && (len(e.models) == 0 || e.has(own)) {
		return own
	}
	if e.has(name) {
		return name
	}
	return ""
}

func (e *engine) has(own string) bool {
	_, found := slices.BinarySearch(e.models, own)
	return found
}

// names are what clients may call its models.
func (e *engine) names() []string {
	out := slices.Clone(e.models)
	for alias := range maps.Keys(e.rec.Aliases) {
		if e.serves(alias) != "" {
			out = append(out, alias)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// signals are what swarm prices. An engine streams, so it is asked once per answer
// and not once per token: the way there and back does not count.
func (e *engine) signals(now time.Time) swarm.Signals {
	s := swarm.Signals{
		LayerMS: e.measures.token, PrefillMS: e.measures.prefill, RoundTripMS: swarm.Measured(0),
		Slots: defaultSlots, Circuit: e.circuit.State(now), Errors: e.circuit.ErrorRate(now),
	}
	if n := e.rec.Parallel; n > 0 {
		s.Slots, s.KVTotal, s.KVFree = n, swarm.Measured(float64(n)), swarm.Measured(float64(n))
	}
	if now.Before(e.paused) {
		s.Circuit = swarm.CircuitOpen
	}
	return s
}

// defaultSlots is how many answers an engine is assumed to compute at once without
// each being slower for it; they batch.
const defaultSlots = 16

// blame takes a failure into the books.
func (e *engine) blame(f *failure, now time.Time) {
	e.failures[f.kind]++
	switch {
	case f.kind == Busy:
		e.paused = now.Add(min(max(f.retryAfter, leastPause), mostPause))
	case f.kind.counts():
		e.circuit.Failure(now)
	}
}

// A pause that an engine asks for is believed within these bounds.
const (
	leastPause = time.Second
	mostPause  = time.Minute
)
