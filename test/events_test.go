package test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hecate/internal/report"
	"hecate/test/harness"
)

// told is one event as the API tells it.
type told struct {
	Seq   uint64 `json:"seq"`
	Kind  string `json:"kind"`
	Level string `json:"level"`
	Node  string `json:"node"`
	Job   string `json:"job"`
	Text  string `json:"text"`
}

// message is one server-sent event.
type message struct{ event, id, data string }

// watch opens a stream and gives its messages; the test's end closes it.
func watch(t *testing.T, url, after string) <-chan message {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if ct := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || ct != "text/event-stream" {
		t.Fatalf("GET %s: %d %s", url, resp.StatusCode, ct)
	}
	out := make(chan message, 4096)
	go func() {
		defer resp.Body.Close()
		defer close(out)
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 16<<20)
		var m message
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				m.event = value
			case "id":
				m.id = value
			case "data":
				m.data = value
			case "":
				if m.data != "" {
					out <- m
				}
				m = message{}
			}
		}
	}()
	return out
}

// until waits for the message that a test is after.
func until(t *testing.T, stream <-chan message, what string, is func(message) bool) message {
	t.Helper()
	patience := time.After(time.Minute)
	for {
		select {
		case m, open := <-stream:
			if !open {
				t.Fatalf("the stream ended before %s", what)
			}
			if is(m) {
				return m
			}
		case <-patience:
			t.Fatalf("no %s", what)
		}
	}
}

func decodeEvent(t *testing.T, m message) (e told) {
	t.Helper()
	if err := json.Unmarshal([]byte(m.data), &e); err != nil {
		t.Fatalf("%v in %s", err, m.data)
	}
	return e
}

// happened waits for an event of a kind about a node.
func happened(t *testing.T, stream <-chan message, kind, node string) message {
	t.Helper()
	return until(t, stream, kind+" "+node, func(m message) bool {
		if m.event != "event" {
			return false
		}
		e := decodeEvent(t, m)
		return e.Kind == kind && (node == "" || e.Node == node)
	})
}

// The same story in the list, in the stream, in the live picture, in the log and
// in the metrics: a node dies and comes back.
func TestOneStreamOfEvents(t *testing.T) {
	t.Parallel()
	s := harness.Up(t)
	live := watch(t, s.URL+"/v1/swarm/live", "")
	var first report.Frame
	m := until(t, live, "frame", func(m message) bool { return m.event == "frame" })
	if err := json.Unmarshal([]byte(m.data), &first); err != nil || !first.Full {
		t.Fatalf("first frame: %v, %+v", err, first)
	}
	for _, name := range []string{"swarm", "answers", "pool", "flows", "node/mini", "node/desk", "node/laptop", "model/hecate-demo"} {
		if first.Parts[name] == nil {
			t.Errorf("no part %s in the first frame", name)
		}
	}
	events := watch(t, s.URL+"/v1/swarm/events", "")
	ready := happened(t, events, "model_ready", "")
	if err := syscall.Kill(s.Node("mini").PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	died := happened(t, events, "node_died", "mini")
	happened(t, events, "node_returned", "mini")
	happened(t, live, "node_died", "mini")
	until(t, live, "frame with mini", func(m message) bool { return m.event == "frame" && strings.Contains(m.data, `"node/mini"`) })

	t.Run("resumed", func(t *testing.T) {
		again := watch(t, s.URL+"/v1/swarm/events", ready.id)
		next := decodeEvent(t, <-again)
		if want := decodeEvent(t, ready).Seq + 1; next.Seq != want {
			t.Errorf("went on at %d, want %d", next.Seq, want)
		}
		if m := happened(t, again, "node_died", "mini"); m.id != died.id {
			t.Errorf("id %s, was %s", m.id, died.id)
		}
	})
	t.Run("list", func(t *testing.T) {
		var list struct {
			Data      []told `json:"data"`
			Last      string `json:"last"`
			Forgotten int    `json:"forgotten"`
		}
		if code := s.Get("/v1/swarm/events?after="+ready.id, &list); code != http.StatusOK || len(list.Data) == 0 || list.Last == "" {
			t.Fatalf("%d, %+v", code, list)
		}
		if !slices.ContainsFunc(list.Data, func(e told) bool { return e.Kind == "node_died" && e.Node == "mini" && e.Level == "warn" }) {
			t.Error("the death is not in the list")
		}
		if code := s.Get("/v1/swarm/events?after=nonsense", nil); code != http.StatusBadRequest {
			t.Errorf("a wrong id: %d", code)
		}
	})
	t.Run("log and metrics", func(t *testing.T) {
		if text := decodeEvent(t, died).Text; !strings.Contains(s.Log(), text) {
			t.Errorf("the log does not know: %s", text)
		}
		resp, err := http.Get(s.URL + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{`hecate_events_total{kind="node_died"} `, `hecate_events_total{kind="answer_lost"} 0`, `hecate_event_drops_total{reason="overrun"} 0`} {
			if !strings.Contains(string(body), line) {
				t.Errorf("no %s in the metrics", line)
			}
		}
	})
}

// Only the admin token steers, and only from a page of this gateway.
func TestPauseOverHTTP(t *testing.T) {
	t.Parallel()
	s := harness.Up(t)
	var access struct {
		Token string `json:"token"`
	}
	data, err := os.ReadFile(filepath.Join(s.Data, "admin.json"))
	if err == nil {
		err = json.Unmarshal(data, &access)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path, token, origin string
		status                    int
		code                      string
	}{
		{"no token", "desk/pause", "", "", 403, "admin_token_missing"},
		{"wrong token", "desk/pause", "hecate-admin-guess", "", 403, "admin_token_wrong"},
		{"another site's page", "desk/pause", access.Token, "https://example.org", 403, "origin_not_allowed"},
		{"unknown node", "nobody/pause", access.Token, "", 404, "unknown_node"},
		{"unknown action", "desk/expel", access.Token, "", 400, "invalid_value"},
		{"paused", "desk/pause", access.Token, s.URL, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body := steer(t, s, c.path, c.token, c.origin)
			if status != c.status || !strings.Contains(body, c.code) {
				t.Errorf("%d %s, want %d %s", status, body, c.status, c.code)
			}
		})
	}
	events := watch(t, s.URL+"/v1/swarm/events", "")
	steered := func(word string) {
		t.Helper()
		e := happened(t, events, "node_steered", "desk")
		if text := decodeEvent(t, e).Text; !strings.Contains(text, word) {
			t.Errorf("%s, want %s", text, word)
		}
	}
	steered("paused")
	if status, body := steer(t, s, "desk/resume", access.Token, ""); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	steered("active")
}

// steer asks the API to pause or resume a node.
func steer(t *testing.T, s *harness.Swarm, path, token, origin string) (status int, body string) {
	t.Helper()
	headers := map[string]string{"X-Hecate-Admin": token}
	if origin != "" {
		headers["Origin"] = origin
	}
	resp, body := send(t, s, http.MethodPost, "/v1/swarm/nodes/"+path, "", headers)
	return resp.StatusCode, body
}

// send is a request as it stands, with its whole answer.
func send(t *testing.T, s *harness.Swarm, method, path, body string, headers map[string]string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}
