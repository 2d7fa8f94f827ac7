package engines

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hecate/internal/control"
	"hecate/internal/control/controltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a gateway of engines only, and what it has logged.
type house struct {
	t    *testing.T
	room *Engines
	url  string
	log  *lockedLog
	http *http.Client
}

type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newHouse(t *testing.T, cfg Config) *house {
	t.Helper()
	h := &house{t: t, log: &lockedLog{}, http: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
	if cfg.LookEvery == 0 {
		cfg.LookEvery = time.Hour // a slow machine must not find out by itself
	}
	if cfg.Store == nil {
		cfg.Store = controltest.NewStore()
	}
	cfg.Log = slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h.room = New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.room.Run(ctx) }()
	srv := httptest.NewServer(http.HandlerFunc(h.serve))
	h.url = srv.URL
	t.Cleanup(func() {
		h.http.CloseIdleConnections()
		srv.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, e := range h.room.mu.by {
			e.retire()
		}
	})
	return h
}

func (h *house) serve(w http.ResponseWriter, r *http.Request) {
	c, err := Read(w, r)
	if c != nil {
		defer c.Close()
	}
	if err == nil {
		c.Key = r.Header.Get("X-Test-Key")
		err = h.room.Serve(w, r, c, &Outcome{})
	}
	if err != nil && r.Context().Err() == nil {
		Fault(err).Write(w)
	}
}

// engine registers an engine and waits until it is up.
func (h *house) engine(rec control.EngineRecord) {
	h.t.Helper()
	if rec.Created.IsZero() {
		rec.Created = time.Unix(1, 0)
	}
	if err := control.PutEngine(h.t.Context(), h.room.cfg.Store, &rec); err != nil {
		h.t.Fatal(err)
	}
	h.until(func() bool {
		for _, v := range h.room.Views() {
			if v.Record.ID == rec.ID && v.State == "up" {
				return !rec.Resume || len(v.Resumes) == len(v.Models)
			}
		}
		return false
	})
}

// until waits for what will come; a guard turns a hang into a failure.
func (h *house) until(is func() bool) {
	h.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("it did not come: %+v\n%s", h.room.Views(), h.log)
		}
	}
}

// reply is what a client got.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // the body did not end cleanly
}

func (h *house) post(path, body string, headers ...string) reply {
	h.t.Helper()
	return h.send(path, strings.NewReader(body), headers...)
}

func (h *house) send(path string, body io.Reader, headers ...string) reply {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.url+path, body)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := h.http.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, header: resp.Header, body: string(b), err: err}
}

// server is an engine made of a handler; its list has the models given.
func server(t *testing.T, models string, h http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		var list []string
		for m := range strings.FieldsSeq(models) {
			list = append(list, `{"id":`+string(quoted(m))+`}`)
		}
		_, _ = io.WriteString(w, `{"object":"list","data":[`+strings.Join(list, ",")+`]}`)
	})
	mux.HandleFunc("/", h)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}
