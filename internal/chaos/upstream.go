package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Limits of an upstream, each with what it is there against.
const (
	maxBody   = 16 << 20 // bytes of a request: a client that never ends one
	maxTokens = 4096     // of an answer: one that outlives the drill
	maxOrder  = 4 << 10  // bytes of POST /fault
)

// Options of an upstream. The zero value is useful.
type Options struct {
	Delay      time.Duration // before the first token under "late"; 0 is 15 s
	Period     time.Duration // of "flapping", half of it down; 0 is 10 s
	Pace       time.Duration // between two tokens; 0 is none
	RetryAfter time.Duration // said with 429, in whole seconds; 0 is 1 s

	now func() time.Time // for tests
}

func (o Options) withDefaults() Options {
	if o.Delay == 0 {
		o.Delay = 15 * time.Second
	}
	if o.Period == 0 {
		o.Period = 10 * time.Second
	}
	if o.RetryAfter == 0 {
		o.RetryAfter = time.Second
	}
	if o.now == nil {
		o.now = time.Now
	}
	return o
}

// Validate reports values out of range.
func (o Options) Validate() error {
	if o.Delay < 0 || o.Period < 0 || o.Pace < 0 || o.RetryAfter < 0 {
		return fmt.Errorf("delay %v, period %v, pace %v, retry-after %v: need 0 or more", o.Delay, o.Period, o.Pace, o.RetryAfter)
	}
	return nil
}

// Upstream is a server of OpenAI's API that fails on purpose: chat completions
// and completions, streamed and whole, and models. Which way it fails can be
// changed at any time by [Upstream.SetFaults] or by POST /fault; requests that
// run go on as they began. It is safe for concurrent use.
//
// Several faults stand in a row, and each request meets the first that strikes:
// one that strikes once is spent then, flapping strikes half of the time, and
// every other one strikes always and must be the last. With none left the
// answer is right.
//
// Silent requests last until the client leaves or the server's base context ends.
type Upstream struct {
	opt Options
	mux *http.ServeMux

	mu struct {
		sync.Mutex
		faults []Fault
		since  time.Time      // flapping counts from here
		struck map[string]int // requests by fault, since the start
	}
}

// New makes an upstream with faults by name; see [Faults]. It errs on unknown
// names, on a fault that could never strike, and on options out of range.
func New(names []string, opt Options) (*Upstream, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	u := &Upstream{opt: opt.withDefaults(), mux: http.NewServeMux()}
	u.mu.struck = map[string]int{}
	if err := u.SetFaults(names); err != nil {
		return nil, err
	}
	u.mux.HandleFunc("POST /v1/chat/completions", u.generate)
	u.mux.HandleFunc("POST /v1/completions", u.generate)
	u.mux.HandleFunc("GET /v1/models", u.models)
	u.mux.HandleFunc("POST /fault", u.order)
	u.mux.HandleFunc("GET /fault", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, u.Report()) })
	u.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, "invalid_request_error", "unknown_url", fmt.Sprintf("There is no %s %s here.", r.Method, r.URL.Path))
	})
	return u, nil
}

// SetFaults replaces the faults. With an error nothing has changed.
func (u *Upstream) SetFaults(names []string) error {
	fs, err := lookUp(names)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mu.faults, u.mu.since = fs, u.opt.now()
	return nil
}

// Report is what an upstream does and did; GET /fault.
type Report struct {
	Faults []string       `json:"faults"` // those not spent
	Struck map[string]int `json:"struck"` // requests by fault since the start; "none" were answered rightly
}

// Report says what is in force now.
func (u *Upstream) Report() Report {
	u.mu.Lock()
	defer u.mu.Unlock()
	r := Report{Faults: []string{}, Struck: map[string]int{}}
	for _, f := range u.mu.faults {
		r.Faults = append(r.Faults, f.Name)
	}
	for name, n := range u.mu.struck {
		r.Struck[name] = n
	}
	return r
}

// ServeHTTP answers, or fails to.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) { u.mux.ServeHTTP(w, r) }

// draw gives the fault that the next request meets and spends it. Looking at the
// models (list) meets only faults of the whole server and spends none.
func (u *Upstream) draw(list bool) Fault {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, f := range u.mu.faults {
		switch {
		case f.part && !u.downLocked(), list && !f.down:
			continue
		case f.once:
			u.mu.faults = append(u.mu.faults[:i:i], u.mu.faults[i+1:]...)
		}
		u.mu.struck[f.Name]++
		return f
	}
	if !list {
		u.mu.struck[faults[0].Name]++
	}
	return faults[0]
}

// downLocked says in which half of its period flapping is; it begins down.
func (u *Upstream) downLocked() bool {
	return u.opt.now().Sub(u.mu.since)%u.opt.Period < u.opt.Period/2
}

// order serves POST /fault: names apart by spaces or commas, or a JSON object
// with "faults".
func (u *Upstream) order(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxOrder))
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid_request_error", "", fmt.Sprintf("The body cannot be read: %v.", err))
		return
	}
	names := strings.FieldsFunc(string(body), func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t' })
	if strings.HasPrefix(strings.TrimSpace(string(body)), "{") {
		var o struct{ Faults []string }
		if err = json.Unmarshal(body, &o); err == nil {
			names = o.Faults
		}
	}
	if err == nil {
		err = u.SetFaults(names)
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid_request_error", "invalid_value", err.Error())
		return
	}
	writeJSON(w, http.StatusOK, u.Report())
}

func (u *Upstream) models(w http.ResponseWriter, r *http.Request) {
	f := u.draw(true)
	if f.down {
		f.strike(&stage{u: u, w: w, r: r})
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{
		map[string]any{"id": "faulty", "object": "model", "created": created, "owned_by": "hecate-chaos"},
	}})
}

func (u *Upstream) generate(w http.ResponseWriter, r *http.Request) {
	var q question
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&q); err != nil {
		writeError(w, http.StatusBadRequest, "invalid_request_error", "invalid_json", fmt.Sprintf("The body is not valid JSON: %v.", err))
		return
	}
	// What stands behind the object is read too: net/http notices that a client
	// left only once it has read the whole body.
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody))
	q.chat = strings.HasSuffix(r.URL.Path, "/chat/completions")
	u.draw(false).strike(&stage{u: u, w: w, r: r, q: q})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: an answer that cannot be written: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// writeError writes OpenAI's error object; code "" is null.
func writeError(w http.ResponseWriter, status int, kind, code, message string) {
	e := map[string]any{"message": message, "type": kind, "param": nil, "code": nil}
	if code != "" {
		e["code"] = code
	}
	writeJSON(w, status, map[string]any{"error": e})
}
