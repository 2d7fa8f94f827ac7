package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The standard library's server leaves this one behind for half a second after a broken connection.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// sixteen is the whole right answer, eight its first half.
const (
	sixteen = lines
	eight   = "one two three four five six seven eight "
)

// got is what a client received.
type got struct {
	Status int
	Code   string // of an error object
	Text   string
	Finish string
	Usage  *usage
	Done   bool
	Events int // well-formed ones
	Bad    int // malformed ones, or a malformed body
	Bytes  int
	Err    error // of the connection: before the headers or while reading
}

type response struct {
	Choices []struct {
		Text    string
		Message struct{ Content string }
		Delta   struct{ Content string }
		Finish  string `json:"finish_reason"`
	}
	Usage *usage
	Error struct{ Code string }
}

func (g *got) take(data []byte) {
	var r response
	if json.Unmarshal(data, &r) != nil {
		g.Bad++
		return
	}
	g.Events++
	for _, c := range r.Choices {
		g.Text += c.Text + c.Message.Content + c.Delta.Content
		if c.Finish != "" {
			g.Finish = c.Finish
		}
	}
	if r.Usage != nil {
		g.Usage = r.Usage
	}
	g.Code = r.Error.Code
}

// served is an upstream on a loopback socket.
type served struct {
	*Upstream
	url    string
	client *http.Client
}

func serve(t *testing.T, opt Options, names ...string) *served {
	t.Helper()
	u, err := New(names, opt)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return &served{Upstream: u, url: server.URL, client: client}
}

// ask sends one request and reads until the end, or until the text that is waited
// for has come and the client leaves.
func (s *served) ask(t *testing.T, path string, stream bool, leaveAfter string) got {
	t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	body := `{"model":"m","messages":[{"role":"user","content":"count"}],"prompt":"count","stream":false}`
	if stream {
		body = strings.Replace(body, `"stream":false`, `"stream":true,"stream_options":{"include_usage":true}`, 1)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return got{Err: err}
	}
	defer resp.Body.Close()
	g := got{Status: resp.StatusCode}
	if stream && resp.StatusCode == http.StatusOK {
		s.readStream(resp.Body, &g, leaveAfter, leave)
		return g
	}
	b, err := io.ReadAll(resp.Body)
	g.Bytes, g.Err = len(b), err
	if len(b) > 0 && err == nil {
		g.take(b)
	}
	return g
}

func (s *served) readStream(body io.Reader, g *got, leaveAfter string, leave func()) {
	var rest string
	buf := make([]byte, 4096)
	for {
		n, err := body.Read(buf)
		g.Bytes += n
		rest += string(buf[:n])
		for {
			event, after, ok := strings.Cut(rest, "\n\n")
			if !ok {
				break
			}
			rest = after
			data := strings.TrimPrefix(event, "data: ")
			if data == "[DONE]" {
				g.Done = true
				continue
			}
			g.take([]byte(data))
		}
		if leaveAfter != "" && g.Text == leaveAfter {
			leave()
			leaveAfter = ""
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				g.Err = err
			}
			return
		}
	}
}

// kind names the end of a connection.
func kind(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "cut"
	case errors.Is(err, context.Canceled):
		return "left"
	}
	return err.Error()
}

// outcome is what a fault is to look like.
type outcome struct {
	Status int
	Code   string
	Text   string
	Finish string
	Done   bool
	Bad    int
	End    string
}

func (g got) outcome() outcome {
	return outcome{g.Status, g.Code, g.Text, g.Finish, g.Done, g.Bad, kind(g.Err)}
}

var (
	rightStream = outcome{Status: 200, Text: sixteen, Finish: "stop", Done: true}
	rightWhole  = outcome{Status: 200, Text: sixteen, Finish: "stop"}
)

// Each fault as a client of both endpoints sees it, streamed and not. "then" is
// the second request.
func TestEveryFault(t *testing.T) {
	refused := func(status int, code string) outcome { return outcome{Status: status, Code: code} }
	for _, c := range []struct {
		fault         string
		stream, whole outcome
		then          outcome // of a stream; the first again when empty
	}{
		{fault: "none", stream: rightStream, whole: rightWhole},
		{fault: "429-once", stream: refused(429, "rate_limit_exceeded"), whole: refused(429, "rate_limit_exceeded"), then: rightStream},
		{fault: "429", stream: refused(429, "rate_limit_exceeded"), whole: refused(429, "rate_limit_exceeded")},
		{fault: "500-once", stream: refused(500, ""), whole: refused(500, ""), then: rightStream},
		{fault: "503", stream: refused(503, ""), whole: refused(503, "")},
		{fault: "reset", stream: outcome{End: "reset"}, whole: outcome{End: "reset"}},
		{fault: "late", stream: rightStream, whole: rightWhole},
		{fault: "cut", stream: outcome{Status: 200, Text: eight, End: "cut"}, whole: outcome{Status: 200, End: "cut"}},
		{fault: "malformed", stream: outcome{Status: 200, Text: sixteen, Finish: "stop", Done: true, Bad: 1}, whole: outcome{Status: 200, Bad: 1}},
		{fault: "no-done", stream: outcome{Status: 200, Text: sixteen}, whole: rightWhole},
		{fault: "empty", stream: outcome{Status: 200}, whole: outcome{Status: 200}},
		{fault: "context-length", stream: refused(400, "context_length_exceeded"), whole: refused(400, "context_length_exceeded")},
		{fault: "content-filter", stream: refused(400, "content_filter"), whole: refused(400, "content_filter")},
		{fault: "filtered", stream: outcome{Status: 200, Text: eight, Finish: "content_filter", Done: true}, whole: outcome{Status: 200, Text: eight, Finish: "content_filter"}},
		{fault: "wrong-usage", stream: rightStream, whole: rightWhole},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
				s := serve(t, Options{Delay: time.Millisecond}, c.fault)
				g := s.ask(t, path, true, "")
				if diff := cmp.Diff(c.stream, g.outcome()); diff != "" {
					t.Errorf("%s, streamed (-want +got):\n%s", path, diff)
				}
				if c.fault == "empty" && g.Bytes != 0 {
					t.Errorf("%s: %d bytes came", path, g.Bytes)
				}
				then := c.then
				if then == (outcome{}) {
					then = c.stream
				}
				if diff := cmp.Diff(then, s.ask(t, path, true, "").outcome()); diff != "" {
					t.Errorf("%s, the second request (-want +got):\n%s", path, diff)
				}
				s = serve(t, Options{Delay: time.Millisecond}, c.fault)
				if diff := cmp.Diff(c.whole, s.ask(t, path, false, "").outcome()); diff != "" {
					t.Errorf("%s, whole (-want +got):\n%s", path, diff)
				}
			}
		})
	}
}

// No fault without a test: those that need their own are named here.
func TestEveryFaultHasAName(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Faults() {
		if seen[f.Name] || f.About == "" || f.strike == nil {
			t.Errorf("fault %q: twice, without a sentence or without a deed", f.Name)
		}
		seen[f.Name] = true
	}
	if n := len(seen); n != 18 {
		t.Errorf("%d faults; the tests of this file know 18", n)
	}
}

func TestStallSendsHalfAndHolds(t *testing.T) {
	s := serve(t, Options{}, "stall")
	want := outcome{Status: 200, Text: eight, End: "left"}
	if diff := cmp.Diff(want, s.ask(t, "/v1/chat/completions", true, eight).outcome()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Silence is no byte, not even a header, for as long as the client waits.
func TestSilence(t *testing.T) {
	s := serve(t, Options{}, "silence")
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	go func() {
		for s.Report().Struck["silence"] == 0 {
			<-time.After(time.Millisecond)
		}
		leave() // the request is being kept waiting now
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/chat/completions", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client.Do(req)
	if err == nil {
		_ = resp.Body.Close()
		t.Fatalf("an answer came: %s", resp.Status)
	}
	if kind(err) != "left" {
		t.Errorf("the connection ended: %v", err)
	}
}

// Under late the headers of a stream come before the delay, and the token after it.
func TestLateSendsHeadersFirst(t *testing.T) {
	s := serve(t, Options{Delay: time.Hour}, "late")
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/chat/completions", strings.NewReader(`{"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	leave()
	if b, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || len(b) != 0 {
		t.Errorf("%s and %q before the delay", resp.Status, b)
	}
}

func TestRetryAfterIsSaid(t *testing.T) {
	s := serve(t, Options{RetryAfter: 1500 * time.Millisecond}, "429")
	resp, err := s.client.Post(s.url+"/v1/completions", "application/json", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := resp.Header.Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After is %q, want 2: whole seconds, rounded up", got)
	}
}

func TestUsage(t *testing.T) {
	for fault, want := range map[string]usage{"none": {1, 16, 17}, "wrong-usage": {-1, 1_000_000_000, 3}} {
		s := serve(t, Options{}, fault)
		for _, stream := range []bool{true, false} {
			g := s.ask(t, "/v1/chat/completions", stream, "")
			if g.Usage == nil || *g.Usage != want {
				t.Errorf("%s, stream %t: usage %+v, want %+v", fault, stream, g.Usage, want)
			}
		}
	}
}

func TestFlappingIsDownForHalfOfEachPeriod(t *testing.T) {
	var now atomic.Int64 // nanoseconds
	s := serve(t, Options{Period: 10 * time.Second, now: func() time.Time { return time.Unix(0, now.Load()) }}, "flapping")
	for _, c := range []struct {
		at   time.Duration
		want outcome
	}{
		{0, outcome{End: "reset"}}, {4999 * time.Millisecond, outcome{End: "reset"}},
		{5 * time.Second, rightStream}, {9999 * time.Millisecond, rightStream},
		{10 * time.Second, outcome{End: "reset"}}, {17 * time.Second, rightStream},
	} {
		now.Store(int64(c.at))
		if diff := cmp.Diff(c.want, s.ask(t, "/v1/chat/completions", true, "").outcome()); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", c.at, diff)
		}
	}
}

// Faults in a row: once, once, then for ever.
func TestFaultsStandInARow(t *testing.T) {
	s := serve(t, Options{}, "429-once", "500-once", "cut")
	for i, want := range []int{429, 500, 200, 200} {
		if g := s.ask(t, "/v1/chat/completions", true, ""); g.Status != want {
			t.Errorf("request %d: status %d, want %d", i+1, g.Status, want)
		}
	}
	want := Report{Faults: []string{"cut"}, Struck: map[string]int{"429-once": 1, "500-once": 1, "cut": 2}}
	if diff := cmp.Diff(want, s.Report()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestFaultsChangeWhileItRuns(t *testing.T) {
	s := serve(t, Options{}, "503")
	post := func(body string) (int, Report) {
		resp, err := s.client.Post(s.url+"/fault", "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var r Report
		if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, r
	}
	if g := s.ask(t, "/v1/completions", false, ""); g.Status != 503 {
		t.Fatalf("status %d", g.Status)
	}
	for _, c := range []struct {
		body   string
		status int
		faults []string
	}{
		{"none", 200, []string{"none"}},
		{"429-once, cut\n", 200, []string{"429-once", "cut"}},
		{`{"faults":["reset"]}`, 200, []string{"reset"}},
		{"", 400, []string{"reset"}},
		{"cut reset", 400, []string{"reset"}},
		{"oops", 400, []string{"reset"}},
		{`{"faults":`, 400, []string{"reset"}},
	} {
		status, _ := post(c.body)
		if diff := cmp.Diff(c.faults, s.Report().Faults); diff != "" || status != c.status {
			t.Errorf("%q: status %d, want %d (-want +got):\n%s", c.body, status, c.status, diff)
		}
	}
}

func TestModels(t *testing.T) {
	for fault, want := range map[string]int{"none": 200, "429-once": 200, "cut": 200, "503": 503} {
		s := serve(t, Options{}, fault)
		resp, err := s.client.Get(s.url + "/v1/models")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != want || want == 200 && !strings.Contains(string(b), `"id":"faulty"`) {
			t.Errorf("%s: %d %s %v", fault, resp.StatusCode, b, err)
		}
	}
	s := serve(t, Options{}, "429-once")
	if resp, err := s.client.Get(s.url + "/v1/models"); err == nil {
		_ = resp.Body.Close()
	}
	if g := s.ask(t, "/v1/completions", false, ""); g.Status != 429 {
		t.Errorf("looking at the models spent the fault: status %d", g.Status)
	}
}

func TestMaxTokens(t *testing.T) {
	for body, want := range map[string]string{
		`{"max_tokens":3}`:                           "one two three",
		`{"max_completion_tokens":1,"max_tokens":3}`: "one",
		`{"max_tokens":17}`:                          sixteen + " one",
		`{"max_tokens":-5}`:                          "one",
	} {
		var q question
		if err := json.Unmarshal([]byte(body), &q); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(rightAnswer(q).tokens, ""); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func TestWrongRequests(t *testing.T) {
	s := serve(t, Options{}, "cut")
	for path, want := range map[string]int{"/v1/chat/completions": 400, "/v1/nothing": 404} {
		resp, err := s.client.Post(s.url+path, "application/json", strings.NewReader("{"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
	for _, names := range [][]string{nil, {"oops"}, {"none", "cut"}, {"503", "429-once"}} {
		if _, err := New(names, Options{}); err == nil {
			t.Errorf("faults %q are taken", names)
		}
	}
	if _, err := New([]string{"late"}, Options{Delay: -1}); err == nil {
		t.Error("a negative delay is taken")
	}
}
