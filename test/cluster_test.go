//go:build !noengine

package test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/admin"
	"hecate/test/harness"
)

// listedNodes asks the gateway's administration who is there.
func listedNodes(t *testing.T, s *harness.Swarm) map[string]admin.NodeInfo {
	t.Helper()
	var list []admin.NodeInfo
	if err := json.Unmarshal([]byte(s.Do("node", "ls", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	nodes := map[string]admin.NodeInfo{}
	for _, n := range list {
		nodes[n.Record.ID] = n
	}
	return nodes
}

// Two machines join a gateway by its token, answer, are paused, resumed and
// removed; then all processes end well.
func TestMachinesJoinByToken(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	if st := s.Status(); st.State != "failed" || len(st.Nodes) != 0 {
		t.Fatalf("before anybody joined: %s with %d nodes, want failed with none", st.State, len(st.Nodes))
	}
	first := harness.Join(t, "first", "--join", s.Token(), "--memory", "64MiB")
	second := harness.Join(t, "second", "--join", s.Token(), "--memory", "64MiB")
	s.AwaitHealthy()
	if answer := s.Ask(harness.Story, map[string]any{"max_tokens": 12}); answer.Usage.CompletionTokens != 12 {
		t.Errorf("an answer of %d tokens, want 12", answer.Usage.CompletionTokens)
	}
	if n := listedNodes(t, s); len(n) != 2 || n["first"].Status != "alive" || n["second"].Status != "alive" {
		t.Errorf("nodes %v, want first and second, alive", n)
	}

	wants := func(node string, want control.Desired) func() bool {
		return func() bool { return listedNodes(t, s)[node].Record.Desired == want }
	}
	s.Do("node", "pause", "first")
	s.Await("first is paused", 10*time.Second, wants("first", control.DesiredPaused))
	for range 4 {
		answer := s.Ask(harness.Story, map[string]any{"max_tokens": 4})
		if route := answer.Header.Get("X-Hecate-Route"); !strings.HasPrefix(route, "second[") {
			t.Errorf("route %q while first is paused", route)
		}
	}
	s.Do("node", "resume", "first")
	s.Await("first is active", 10*time.Second, wants("first", control.DesiredActive))
	s.AwaitHealthy()

	s.Do("node", "remove", "second")
	if err := second.Wait(); err == nil || !strings.Contains(second.Log(), "was removed from the swarm") {
		t.Errorf("the removed node ended with %v\n%s", err, second.Log())
	}
	s.Await("second is gone", 10*time.Second, func() bool { return len(listedNodes(t, s)) == 1 && len(s.Status().Nodes) == 1 })
	s.Ask(harness.Story, map[string]any{"max_tokens": 4})
	if err := first.Stop(); err != nil {
		t.Errorf("first ended with %v\n%s", err, first.Log())
	}
}

// A revoked token lets nobody in, and says so.
func TestRevokedToken(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, "--token-uses", "0")
	token := strings.TrimSpace(s.Do("token", "create", "--note", "attic"))
	list := s.Do("token", "ls")
	if !strings.Contains(list, "attic") || !strings.Contains(list, "0 of 1") {
		t.Fatalf("token ls: %s", list)
	}
	var records []struct{ ID string }
	if err := json.Unmarshal([]byte(s.Do("token", "ls", "--json")), &records); err != nil || len(records) != 1 {
		t.Fatalf("%v, %d tokens, want 1", err, len(records))
	}
	s.Do("token", "revoke", records[0].ID)
	w := harness.Join(t, "late", "--join", token, "--memory", "64MiB")
	if err := w.Wait(); err == nil || !strings.Contains(w.Log(), "does not know this token") {
		t.Errorf("a node with a revoked token ended with %v\n%s", err, w.Log())
	}
}

// knock sends a request with an API key and gives status and error code.
func knock(t *testing.T, s *harness.Swarm, method, path, key string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body struct{ Error struct{ Code *string } }
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || body.Error.Code == nil {
		return resp.StatusCode, ""
	}
	return resp.StatusCode, *body.Error.Code
}

// Where keys are asked for, nothing but the probe and the page answers without one.
func TestNothingAnswersWithoutAKey(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, "--require-key")
	for _, path := range []string{"/v1/models", "/v1/swarm", "/v1/pool", "/metrics", "/readyz", "/healthz/../v1/models", "//healthz"} {
		if code, _ := knock(t, s, http.MethodGet, path, ""); code != http.StatusUnauthorized {
			t.Errorf("GET %s without a key: %d, want 401", path, code)
		}
	}
	s.Await("the gateway knows its keys", time.Minute, func() bool { // until then it says 503
		code, _ := knock(t, s, http.MethodPost, "/v1/completions", "sk-hecate-guess")
		return code != http.StatusServiceUnavailable
	})
	for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/swarm/chaos/arm"} {
		if code, _ := knock(t, s, http.MethodPost, path, "sk-hecate-guess"); code != http.StatusUnauthorized {
			t.Errorf("POST %s with a guess: %d, want 401", path, code)
		}
	}
	for _, open := range []string{"/healthz", "/"} { // the page is the same for all, and asks for a key itself
		if code, _ := knock(t, s, http.MethodGet, open, ""); code != http.StatusOK {
			t.Errorf("GET %s: %d, want 200", open, code)
		}
	}
}

// A key opens the API within its limits, and is worthless once it was revoked,
// without a restart.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, "--require-key")
	key := strings.TrimSpace(s.Do("key", "create", "--rate", "1"))
	look := func(key string) int {
		code, _ := knock(t, s, http.MethodGet, "/v1/models", key)
		return code
	}
	s.Await("the key is taken", 5*time.Second, func() bool { return look(key) == http.StatusOK })
	if code, why := knock(t, s, http.MethodGet, "/v1/models", key[:len(key)-1]); code != http.StatusUnauthorized || why != "invalid_api_key" {
		t.Errorf("a cut key: %d %q, want 401 invalid_api_key", code, why)
	}
	first, _ := knock(t, s, http.MethodPost, "/v1/completions", key)
	second, _ := knock(t, s, http.MethodPost, "/v1/completions", key)
	if first != http.StatusBadRequest || second != http.StatusTooManyRequests {
		t.Errorf("two requests in a minute with a key for one: %d and %d, want 400 and 429", first, second)
	}
	var records []struct{ ID string }
	if err := json.Unmarshal([]byte(s.Do("key", "ls", "--json")), &records); err != nil || len(records) != 1 {
		t.Fatalf("%v, %d keys, want 1", err, len(records))
	}
	s.Do("key", "revoke", records[0].ID)
	s.Await("the key is refused", 5*time.Second, func() bool { return look(key) == http.StatusUnauthorized })
}
