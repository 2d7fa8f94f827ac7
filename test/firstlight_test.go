//go:build !noengine

package test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hecate/internal/gateway/openai"
	"hecate/internal/node"
	"hecate/internal/report"
	"hecate/test/harness"
)

// TestFirstLight is the main job on one swarm of three real nodes.
func TestFirstLight(t *testing.T) {
	s := harness.Up(t)
	t.Run("status", func(t *testing.T) { checkStatus(t, s) })
	t.Run("models", func(t *testing.T) { checkModels(t, s) })
	t.Run("chat", func(t *testing.T) { checkChat(t, s) })
	t.Run("stream", func(t *testing.T) { checkStream(t, s) })
	t.Run("completions", func(t *testing.T) { checkCompletions(t, s) })
	t.Run("stop strings", func(t *testing.T) { checkStops(t, s) })
	t.Run("seed", func(t *testing.T) { checkSeed(t, s) })
	t.Run("logprobs", func(t *testing.T) { checkLogprobs(t, s) })
	t.Run("choices", func(t *testing.T) { checkChoices(t, s) })
	t.Run("control tokens in content", func(t *testing.T) { checkContent(t, s) })
	t.Run("counters", func(t *testing.T) { checkCounters(t, s) })
	t.Run("memory", func(t *testing.T) { checkMemory(t, s) })
	t.Run("ten streams", func(t *testing.T) { checkTenStreams(t, s) })
	t.Run("a client leaves", func(t *testing.T) { checkLeaving(t, s) })
	t.Run("bad requests", func(t *testing.T) { checkBadRequests(t, s) })
	t.Run("browsers", func(t *testing.T) { checkBrowsers(t, s) })
}

func checkStatus(t *testing.T, s *harness.Swarm) {
	st := s.Status()
	if st.State != "healthy" || len(st.Nodes) != 3 || len(st.Models) != 1 {
		t.Fatalf("state %s, %d nodes, %d models; want healthy, 3, 1", st.State, len(st.Nodes), len(st.Models))
	}
	holders := map[int]int{}
	for _, n := range st.Nodes {
		if n.PID == 0 || !n.Alive || n.MemoryBudget == 0 || harness.Gone(n.PID) {
			t.Errorf("node %+v: want a living local process with a budget", n)
		}
		if n.MemoryUsed > n.MemoryBudget {
			t.Errorf("%s uses %d of %d bytes", n.ID, n.MemoryUsed, n.MemoryBudget)
		}
		layers := 0
		for _, f := range n.Fragments {
			for l := f.Layers.First; l <= f.Layers.Last; l++ {
				holders[l]++
				layers++
			}
		}
		if layers >= 12 {
			t.Errorf("%s holds all layers: the model is not split", n.ID)
		}
	}
	m := st.Models[0]
	if !m.Ready || !m.Demo || len(m.Pipelines) != 2 {
		t.Errorf("model %+v: want ready, a demo, two copies", m)
	}
	for l := range m.Layers {
		if holders[l] < 2 {
			t.Errorf("layer %d has %d holders, want 2", l, holders[l])
		}
	}
}

func checkModels(t *testing.T, s *harness.Swarm) {
	var list openai.ModelList
	if code := s.Get("/v1/models", &list); code != 200 || len(list.Data) != 1 || list.Data[0].ID != harness.Model {
		t.Fatalf("%d %+v", code, list)
	}
	var one openai.Model
	if code := s.Get("/v1/models/"+harness.Model, &one); code != 200 || one.ID != harness.Model || one.Created == 0 || !one.Hecate.Demo {
		t.Errorf("%d %+v", code, one)
	}
	if code := s.Get("/v1/models/nobody", nil); code != 404 {
		t.Errorf("an unknown model: %d, want 404", code)
	}
}

var routeShape = regexp.MustCompile(`^[a-z0-9]+\[\d+-\d+\](,[a-z0-9]+\[\d+-\d+\])+$`)

func checkChat(t *testing.T, s *harness.Swarm) {
	a := s.AskWith(t, "What is the capital of France?", nil)
	if !strings.Contains(a.Text(), "Paris") || a.Choices[0].FinishReason != "stop" {
		t.Errorf("%q, %s", a.Text(), a.Choices[0].FinishReason)
	}
	if u := a.Usage; u.PromptTokens == 0 || u.CompletionTokens == 0 || u.TotalTokens != u.PromptTokens+u.CompletionTokens {
		t.Errorf("usage %+v", u)
	}
	if r := a.Header.Get("X-Hecate-Route"); !routeShape.MatchString(r) {
		t.Errorf("X-Hecate-Route %q, want a split route", r)
	}
	if x := a.Header.Get("X-Hecate-Exactness"); x != "exact" {
		t.Errorf("X-Hecate-Exactness %q, want exact", x)
	}
	if short := s.AskWith(t, harness.Story, map[string]any{"max_completion_tokens": 5}); short.Usage.CompletionTokens != 5 || short.Choices[0].FinishReason != "length" {
		t.Errorf("max_completion_tokens 5: %+v, %s", short.Usage, short.Choices[0].FinishReason)
	}
}

func checkStream(t *testing.T, s *harness.Swarm) {
	whole := s.AskWith(t, harness.Story, map[string]any{"max_tokens": 60})
	st, err := s.AskStream(context.Background(), harness.Story, map[string]any{"max_tokens": 60, "stream_options": map[string]bool{"include_usage": true}}, nil)
	if err != nil || st.Broken != nil {
		t.Fatal(err, st.Broken)
	}
	if st.Text != whole.Text() || st.Finish != "length" || !st.Done {
		t.Errorf("streamed %q (%s, done %v), want %q", st.Text, st.Finish, st.Done, whole.Text())
	}
	if st.Usage == nil || *st.Usage != whole.Usage {
		t.Errorf("usage %+v, want %+v", st.Usage, whole.Usage)
	}
	if st.Events < 20 {
		t.Errorf("only %d events for 60 tokens: it is not a stream", st.Events)
	}
}

func checkCompletions(t *testing.T, s *harness.Swarm) {
	code, _, body := s.Post(context.Background(), "/v1/completions", map[string]any{"model": harness.Model, "prompt": "Once upon a time, there was a kind bear named Lena. Lena lived", "temperature": 0, "max_tokens": 8, "echo": true})
	if code != 200 || !strings.Contains(string(body), `"text":"Once upon a time, there was a kind bear named Lena. Lena lived`) || !strings.Contains(string(body), `"object":"text_completion"`) {
		t.Errorf("%d %s", code, body)
	}
	code, _, body = s.Post(context.Background(), "/v1/completions", map[string]any{"model": harness.Model, "prompt": []int{1, 3, 585}, "max_tokens": 2})
	if code != 200 {
		t.Errorf("token ids as prompt: %d %s", code, body)
	}
}

func checkStops(t *testing.T, s *harness.Swarm) {
	whole := s.AskWith(t, harness.Story, map[string]any{"max_tokens": 60}).Text()
	words := strings.Fields(whole)
	stop := words[8] + " " + words[9]
	st, err := s.AskStream(context.Background(), harness.Story, map[string]any{"max_tokens": 60, "stop": []string{"@@@", stop}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want, _, _ := strings.Cut(whole, stop); st.Text != want || st.Finish != "stop" {
		t.Errorf("stop at %q gave %q (%s), want %q", stop, st.Text, st.Finish, want)
	}
}

func checkSeed(t *testing.T, s *harness.Swarm) {
	ask := func(seed int) string {
		return s.AskWith(t, harness.Story, map[string]any{"temperature": 0.8, "seed": seed, "max_tokens": 40}).Text()
	}
	if a, b := ask(7), ask(7); a != b {
		t.Errorf("the same seed gave %q and %q", a, b)
	}
	if ask(7) == ask(8) && ask(9) == ask(10) {
		t.Error("other seeds give the same text")
	}
}

func checkLogprobs(t *testing.T, s *harness.Swarm) {
	a := s.AskWith(t, "Hello!", map[string]any{"logprobs": true, "top_logprobs": 3})
	entries := a.Choices[0].Logprobs.Content
	var text []byte
	for _, e := range entries {
		for _, b := range e.Bytes {
			text = append(text, byte(b))
		}
		if len(e.Top) != 3 || e.Logprob > 0 || e.Top[0].Logprob < e.Top[1].Logprob {
			t.Errorf("entry %+v", e)
		}
		if e.Top[0].Token != e.Token {
			t.Errorf("greedy took %q, but %q was more likely", e.Token, e.Top[0].Token)
		}
	}
	if string(text) != a.Text() {
		t.Errorf("the tokens spell %q, the text is %q", text, a.Text())
	}
}

func checkChoices(t *testing.T, s *harness.Swarm) {
	a := s.AskWith(t, harness.Story, map[string]any{"n": 3, "temperature": 0.9, "seed": 1, "max_tokens": 20})
	if len(a.Choices) != 3 || a.Usage.CompletionTokens != 60 {
		t.Fatalf("%d choices, usage %+v", len(a.Choices), a.Usage)
	}
	if a.Choices[0].Message.Content == a.Choices[1].Message.Content {
		t.Error("two choices are the same")
	}
}

// What a user writes never becomes a control token.
func checkContent(t *testing.T, s *harness.Swarm) {
	plain := s.AskWith(t, "hello <im_end>", nil).Usage.PromptTokens
	sly := s.AskWith(t, "hello <|im_end|>", nil).Usage.PromptTokens
	if sly <= plain-2 {
		t.Errorf("prompt of %d tokens with a control token's text, %d without: it was read as one", sly, plain)
	}
}

// Every stage computes exactly prompt and completion, no more and no less.
func checkCounters(t *testing.T, s *harness.Swarm) {
	for name, more := range map[string]map[string]any{
		"ended by the model": {}, "ended by the limit": {"max_tokens": 30}, "ended by a stop string": {"stop": "lantern"},
	} {
		before := steady(s)
		a := s.AskWith(t, harness.Story, more)
		on := nodesOf(a.Header.Get("X-Hecate-Route"))
		want := int64(a.Usage.PromptTokens + a.Usage.CompletionTokens)
		s.Await(fmt.Sprintf("%s: %d tokens computed by each stage of %v", name, want, on), 5*time.Second, func() bool {
			after := tokensOf(s)
			for id, n := range after {
				rise := n - before[id]
				if slices.Contains(on, id) && rise != want || !slices.Contains(on, id) && rise != 0 {
					return false
				}
			}
			return true
		})
	}
}

// steady is what the nodes have computed, once all they did is reported.
func steady(s *harness.Swarm) map[string]int64 {
	last, since := tokensOf(s), time.Now()
	s.Await("the counters stand still", 10*time.Second, func() bool {
		if now := tokensOf(s); !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		return time.Since(since) > reportDelay
	})
	return last
}

func tokensOf(s *harness.Swarm) map[string]int64 {
	out := map[string]int64{}
	for _, n := range s.Status().Nodes {
		out[n.ID] = n.TokensComputed
	}
	return out
}

func nodesOf(route string) (nodes []string) {
	for _, part := range strings.Split(route, ",") {
		name, _, _ := strings.Cut(part, "[")
		nodes = append(nodes, name)
	}
	return nodes
}

// runtimeMemory is what a node's process takes besides weights, KV cache and
// work memory: code, Go's heap, TLS, the control plane's client.
const runtimeMemory = 160 << 20

func checkMemory(t *testing.T, s *harness.Swarm) {
	for _, n := range s.Status().Nodes {
		if rss := residentSize(t, n.PID); rss > n.MemoryBudget+node.WorkMemory+runtimeMemory {
			t.Errorf("%s takes %d MiB, its budget is %d MiB", n.ID, rss>>20, n.MemoryBudget>>20)
		}
	}
}

func residentSize(t *testing.T, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Skipf("this system does not tell a process's size: %v", err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}

func checkTenStreams(t *testing.T, s *harness.Swarm) {
	want := s.AskWith(t, harness.Story, map[string]any{"max_tokens": 100}).Text()
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			st, err := s.AskStream(context.Background(), harness.Story, map[string]any{"max_tokens": 100}, nil)
			if err != nil || st.Text != want || !st.Done {
				t.Errorf("stream %d: %v, done %v, %q", i, err, st.Done, st.Text)
			}
		})
	}
	wg.Wait()
}

// A client that leaves frees every stage within a second.
func checkLeaving(t *testing.T, s *harness.Swarm) {
	ctx, leave := context.WithCancel(context.Background())
	pieces := 0
	_, err := s.AskStream(ctx, harness.Story, nil, func(string) {
		if pieces++; pieces == 5 {
			leave()
		}
	})
	leave()
	if err == nil && pieces > 300 {
		t.Fatal("the answer ended before the client left")
	}
	s.Await("every stage is free again", time.Second+reportDelay, func() bool {
		for _, n := range s.Status().Nodes {
			if n.Sessions != 0 || n.FreeCells != n.Cells {
				return false
			}
		}
		return true
	})
}

// reportDelay is how late a node's report may be.
const reportDelay = 1200 * time.Millisecond

func checkBadRequests(t *testing.T, s *harness.Swarm) {
	user := []map[string]string{{"role": "user", "content": "x"}}
	long := strings.Repeat("word ", 2000)
	for _, c := range []struct {
		name, path string
		body       any
		status     int
		code       string
	}{
		{"unknown model", "/v1/chat/completions", map[string]any{"model": "gpt-x", "messages": user}, 404, "model_not_found"},
		{"malformed JSON", "/v1/chat/completions", `{"model": `, 400, "invalid_json"},
		{"not an object", "/v1/chat/completions", `[]`, 400, "invalid_type"},
		{"wrong type", "/v1/chat/completions", `{"model":"hecate-demo","messages":[{"role":"user","content":"x"}],"temperature":"hot"}`, 400, "invalid_type"},
		{"wrong messages", "/v1/chat/completions", `{"model":"hecate-demo","messages":"hi"}`, 400, "invalid_type"},
		{"no messages", "/v1/chat/completions", `{"model":"hecate-demo","messages":[]}`, 400, "missing_required_parameter"},
		{"no model", "/v1/chat/completions", map[string]any{"messages": user}, 400, "missing_required_parameter"},
		{"bad role", "/v1/chat/completions", `{"model":"hecate-demo","messages":[{"role":"king","content":"x"}]}`, 400, "invalid_value"},
		{"temperature out of range", "/v1/chat/completions", map[string]any{"model": harness.Model, "messages": user, "temperature": 9}, 400, "invalid_value"},
		{"too many stops", "/v1/chat/completions", map[string]any{"model": harness.Model, "messages": user, "stop": []string{"a", "b", "c", "d", "e"}}, 400, "invalid_value"},
		{"no tokens", "/v1/chat/completions", map[string]any{"model": harness.Model, "messages": user, "max_tokens": 0}, 400, "invalid_value"},
		{"bias for a token that is not there", "/v1/chat/completions", map[string]any{"model": harness.Model, "messages": user, "logit_bias": map[string]int{"99999": 1}}, 400, "invalid_value"},
		{"prompt over the context", "/v1/chat/completions", map[string]any{"model": harness.Model, "messages": []map[string]string{{"role": "user", "content": long}}}, 400, "context_length_exceeded"},
		{"body over the limit", "/v1/chat/completions", `{"model":"` + strings.Repeat("x", openai.MaxBody) + `"}`, 413, "request_too_large"},
		{"empty prompt", "/v1/completions", map[string]any{"model": harness.Model, "prompt": []int{}}, 400, "invalid_value"},
		{"tools", "/v1/chat/completions", map[string]any{"model": harness.Model, "messages": user, "tools": []map[string]any{{"type": "function", "function": map[string]any{"name": "f"}}}}, 400, "unsupported_parameter"},
		{"unknown path", "/v1/nothing", `{}`, 404, "unknown_url"},
		{"chaos without leave", "/v1/swarm/chaos/arm", `{"stage":0,"at_token":1,"action":"kill"}`, 403, "chaos_not_allowed"},
	} {
		code, header, body := s.Post(context.Background(), c.path, c.body)
		if code != c.status || !strings.Contains(string(body), `"code":"`+c.code+`"`) || !strings.Contains(string(body), `"message":`) {
			t.Errorf("%s: %d %s, want %d %s", c.name, code, body, c.status, c.code)
		}
		if header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: a client's mistake may be retried", c.name)
		}
	}
	if s.Status().State != "healthy" {
		t.Error("bad requests hurt the swarm")
	}
}

func checkBrowsers(t *testing.T, s *harness.Swarm) {
	send := func(host, origin string) int {
		req, err := http.NewRequest(http.MethodPost, s.URL+"/v1/chat/completions", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			req.Host = host
		}
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if code := send("evil.example", ""); code != http.StatusMisdirectedRequest {
		t.Errorf("a foreign host name: %d", code)
	}
	if code := send("", "https://evil.example"); code != http.StatusForbidden {
		t.Errorf("a foreign page: %d", code)
	}
	if code := send("", s.URL); code != http.StatusBadRequest {
		t.Errorf("our own page: %d, want the usual 400 for an empty request", code)
	}
}

// The same greedy text whatever the number of stages.
func TestAnyNumberOfStagesGivesTheSameText(t *testing.T) {
	var want string
	for stages := 1; stages <= 4; stages++ {
		s := harness.Up(t, "--nodes", fmt.Sprint(stages), "--copies", "1")
		a := s.Ask(harness.Story, nil)
		if got := len(nodesOf(a.Header.Get("X-Hecate-Route"))); got != stages {
			t.Errorf("%d nodes, but the route is %s", stages, a.Header.Get("X-Hecate-Route"))
		}
		if want == "" {
			want = a.Text()
		}
		if a.Text() != want {
			t.Errorf("%d stages: %q, want %q", stages, a.Text(), want)
		}
		s.Stop()
	}
}

// A node that is killed before a request, or before its first token, costs the
// client nothing; a stopped one is left.
func TestANodeMayDieBeforeTheFirstToken(t *testing.T) {
	s := harness.Up(t, "--allow-chaos")
	want := s.Ask(harness.Story, map[string]any{"max_tokens": 40}).Text()
	for _, n := range s.Status().Nodes {
		pid := s.Signal(n.ID, syscall.SIGKILL)
		if !s.Status().Models[0].Ready {
			t.Errorf("%s is dead and the model is not ready, though every layer has a holder", n.ID)
		}
		if got := s.Ask(harness.Story, map[string]any{"max_tokens": 40}).Text(); got != want {
			t.Errorf("%s killed before the request: %q, want %q", n.ID, got, want)
		}
		s.Await("another process of "+n.ID, 30*time.Second, func() bool { p := s.Node(n.ID).PID; return p != 0 && p != pid })
		s.AwaitHealthy()
	}
	for stage := range 2 {
		s.Post(context.Background(), "/v1/swarm/chaos/arm", map[string]any{"stage": stage, "at_token": 0, "action": "kill"})
		a := s.Ask(harness.Story, map[string]any{"max_tokens": 40})
		if a.Text() != want || a.Hecate.Rescues != 1 {
			t.Errorf("stage %d killed before its first token: %d rescues, %q", stage, a.Hecate.Rescues, a.Text())
		}
		s.AwaitHealthy()
	}
	s.Post(context.Background(), "/v1/swarm/chaos/arm", map[string]any{"stage": 1, "at_token": 5, "action": "stop"})
	a := s.Ask(harness.Story, map[string]any{"max_tokens": 40})
	if a.Text() != want || a.Hecate.Rescues != 1 {
		t.Errorf("a stopped node: %d rescues, %q", a.Hecate.Rescues, a.Text())
	}
	var frozen report.Node
	s.Await("the stopped node is seen as dead", 5*time.Second, func() bool {
		for _, n := range s.Status().Nodes {
			if !n.Alive {
				frozen = n
				return true
			}
		}
		return false
	})
	wake(t, s, frozen.ID)
	s.AwaitHealthy()
}

// wake continues a stopped process of a node.
func wake(t *testing.T, s *harness.Swarm, id string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err != nil || !strings.Contains(string(line), s.Data+"/nodes/"+id+"\x00") {
			continue
		}
		var pid int
		if _, err := fmt.Sscan(e.Name(), &pid); err == nil {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}
