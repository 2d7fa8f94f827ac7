package engines

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"hecate/internal/chaos"
	"hecate/internal/control"
)

const (
	words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
	ask   = `{"model":"faulty","messages":[{"role":"user","content":"Count!"}]}`
)

var askStream = strings.Replace(ask, "{", `{"stream":true,`, 1)

// A want is what a client shall see of a fault: a status and code, or the end of a
// stream.
type want struct {
	status int
	holds  string // in the body
	broken bool   // one error event, then the connection breaks
}

var (
	fine       = want{status: 200, holds: "sixteen"}
	engineLost = want{status: 503, holds: "engine_failed"}
	lostStream = want{status: 200, holds: `data: {"error":{"message":"`, broken: true}
)

// Every fault that the faulty upstream knows, with it alone and with an honest
// replica beside it, as a stream and whole.
var faultTable = map[string]struct{ alone, aloneStream, two, twoStream want }{
	"none":           {fine, fine, fine, fine},
	"429-once":       {want{status: 429, holds: "rate_limit"}, want{status: 429, holds: "rate_limit"}, fine, fine},
	"429":            {want{status: 429, holds: "rate_limit"}, want{status: 429, holds: "rate_limit"}, fine, fine},
	"500-once":       {want{status: 500, holds: "server_error"}, want{status: 500, holds: "server_error"}, fine, fine},
	"503":            {want{status: 503, holds: "unavailable"}, want{status: 503, holds: "unavailable"}, fine, fine},
	"reset":          {engineLost, engineLost, fine, fine},
	"silence":        {engineLost, engineLost, fine, fine},
	"late":           {fine, fine, fine, fine},
	"cut":            {engineLost, lostStream, fine, lostStream},
	"stall":          {engineLost, lostStream, fine, lostStream},
	"malformed":      {engineLost, lostStream, fine, lostStream},
	"no-done":        {fine, lostStream, fine, lostStream},
	"empty":          {engineLost, engineLost, fine, fine},
	"context-length": {want{status: 400, holds: "context_length_exceeded"}, want{status: 400, holds: "context_length_exceeded"}, want{status: 400, holds: "context_length_exceeded"}, want{status: 400, holds: "context_length_exceeded"}},
	"content-filter": {want{status: 400, holds: "content_filter"}, want{status: 400, holds: "content_filter"}, want{status: 400, holds: "content_filter"}, want{status: 400, holds: "content_filter"}},
	"filtered":       {want{status: 200, holds: "content_filter"}, want{status: 200, holds: "content_filter"}, want{status: 200, holds: "content_filter"}, want{status: 200, holds: "content_filter"}},
	"wrong-usage":    {fine, fine, fine, fine},
	"flapping":       {engineLost, engineLost, fine, fine},
}

func TestEveryNamedFault(t *testing.T) {
	for _, f := range chaos.Faults() {
		row, ok := faultTable[f.Name]
		if !ok {
			t.Errorf("nobody says what a client shall see of %q", f.Name)
			continue
		}
		for name, c := range map[string]struct {
			body string
			two  bool
			want want
		}{
			"alone": {ask, false, row.alone}, "alone, stream": {askStream, false, row.aloneStream},
			"two": {ask, true, row.two}, "two, stream": {askStream, true, row.twoStream},
		} {
			t.Run(f.Name+"/"+name, func(t *testing.T) { t.Parallel(); meets(t, f.Name, c.body, c.two, c.want) })
		}
	}
}

// upstream starts a faulty upstream that is honest so far.
func upstream(t *testing.T, o chaos.Options) (*chaos.Upstream, string) {
	t.Helper()
	u, err := chaos.New([]string{"none"}, o)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(u)
	t.Cleanup(srv.Close)
	return u, srv.URL + "/v1"
}

func meets(t *testing.T, fault, body string, two bool, w want) {
	h := newHouse(t, Config{})
	u, url := upstream(t, chaos.Options{Delay: 30 * time.Millisecond, Period: time.Hour})
	rec := control.EngineRecord{ID: "a", URL: url}
	switch { // what must be waited for to the end is short; a slow machine may be late with all else
	case fault == "stall" && body == askStream:
		rec.Silence = 500 * time.Millisecond
	case fault == "silence", fault == "stall":
		rec.FirstByte = 500 * time.Millisecond
	}
	h.engine(rec)
	var other *chaos.Upstream
	if two {
		var at string
		other, at = upstream(t, chaos.Options{})
		h.engine(control.EngineRecord{ID: "b", URL: at})
	}
	if err := u.SetFaults([]string{fault}); err != nil {
		t.Fatal(err)
	}
	got := h.post("/v1/chat/completions", body)
	check(t, got, w, strings.Contains(body, "stream"))
	if u.Report().Struck[fault] == 0 {
		t.Error("the fault never struck")
	}
	mistake := w.status == 400 || w.status == 429
	if failures := h.room.Views()[0].Failures; mistake != (len(failures) == 0) && slices.Contains([]string{"context-length", "content-filter"}, fault) {
		t.Errorf("failures %v of a client's own mistake", failures)
	}
	if two && slices.Contains([]string{"context-length", "content-filter", "filtered", "none"}, fault) && other.Report().Struck["none"] > 0 {
		t.Error("the other engine was asked too")
	}
}

func check(t *testing.T, got reply, w want, stream bool) {
	t.Helper()
	if got.status != w.status || !strings.Contains(got.body, w.holds) {
		t.Fatalf("status %d and %q (%v), want %d with %q", got.status, got.body, got.err, w.status, w.holds)
	}
	if (got.err != nil) != w.broken {
		t.Fatalf("the body ended with %v; broken is to be %v", got.err, w.broken)
	}
	switch {
	case w.broken:
		if strings.Contains(got.body, "[DONE]") || strings.Contains(got.body, `"finish_reason":"`) || strings.Count(got.body, `{"error":`) != 1 {
			t.Errorf("a broken stream that looks like a whole one, or has not one error: %q", got.body)
		}
	case w.status == 200 && stream:
		if !strings.HasSuffix(got.body, "data: [DONE]\n\n") {
			t.Errorf("a stream without its end: %q", got.body)
		}
	}
	if (w.status == 429 || w.status == 503 && w.holds == "engine_failed") && got.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

// A client that closes its half of the connection counts as gone. It still reads, so
// its answer must not end like a whole one.
func TestAHalfClosedAnswerDoesNotEndCleanly(t *testing.T) {
	h := newHouse(t, Config{})
	h.engine(control.EngineRecord{ID: "a", URL: server(t, "m", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}]}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})})
	for range 5 {
		c, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		body := `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		var got strings.Builder
		b := make([]byte, 4096)
		for !strings.Contains(got.String(), `"content":"b"`) {
			n, err := c.Read(b)
			if err != nil {
				t.Fatal(err, got.String())
			}
			got.Write(b[:n])
		}
		_ = c.(*net.TCPConn).CloseWrite()
		if rest, _ := io.ReadAll(c); strings.Contains(string(rest), "0\r\n") {
			t.Errorf("the answer ended like a whole one: %q", rest)
		}
		_ = c.Close()
	}
}

// Who leaves before the end is charged for what came until then.
func TestWhoLeavesIsCharged(t *testing.T) {
	h := newHouse(t, Config{})
	h.engine(control.EngineRecord{ID: "a", URL: server(t, "m", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 5 {
			_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}]}\n\n")
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})})
	outcome := make(chan Outcome, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Read(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		var out Outcome
		defer func() { outcome <- out }()
		_ = h.room.Serve(w, r, c, &out)
	}))
	defer srv.Close()
	resp, err := http.Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","stream":true,"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 250)); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if out := <-outcome; out.CompletionTokens != 5 || out.PromptTokens == 0 {
		t.Errorf("%d tokens of prompt, %d of the answer", out.PromptTokens, out.CompletionTokens)
	}
}

// slowReader is a client who takes his time over the first events.
type slowReader struct {
	*httptest.ResponseRecorder
	takes time.Duration
}

func (s *slowReader) Write(b []byte) (int, error) {
	time.Sleep(s.takes)
	s.takes = 0
	return s.ResponseRecorder.Write(b)
}

// An engine is not silent while its client takes nothing.
func TestASlowClientIsNotItsEnginesFault(t *testing.T) {
	h := newHouse(t, Config{})
	const silence = time.Second
	h.engine(control.EngineRecord{ID: "a", Silence: silence, URL: server(t, "m", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}]}\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		time.Sleep(silence / 10) // the end comes by itself, after the client has begun to take
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	})})
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"model":"m","stream":true,"messages":[]}`))
	w := &slowReader{httptest.NewRecorder(), 2 * silence}
	c, err := Read(w, r)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%v\n%s", p, h.log)
		}
	}()
	if err := h.room.Serve(w, r, c, &Outcome{}); err != nil || !strings.Contains(w.Body.String(), "[DONE]") {
		t.Errorf("%v, %s", err, w.Body)
	}
}

// However many tokens a client allows, no engine is silent because of that.
func TestTokensWithoutNumberMakeNoEngineSilent(t *testing.T) {
	h := newHouse(t, Config{})
	for _, id := range []string{"a", "b"} {
		h.engine(control.EngineRecord{ID: id, URL: server(t, "m", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"choices":[]}`)
		})})
	}
	for _, most := range []string{"9223372036854775807", "40000000000", "40000000001", "1"} {
		got := h.post("/v1/chat/completions", `{"model":"m","max_tokens":`+most+`,"messages":[]}`)
		if got.status != http.StatusOK {
			t.Errorf("%s tokens: %d %s", most, got.status, got.body)
		}
	}
	if strings.Contains(h.log.String(), "an engine failed") {
		t.Error(h.log)
	}
}
