//go:build !noengine

package test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"hecate/internal/demomodel"
	"hecate/internal/gateway/openai"
	"hecate/internal/tokens"
	"hecate/test/harness"
)

// checkWire looks at what clients rely on without saying so.
func checkWire(t *testing.T, s *harness.Swarm) {
	t.Run("headers", func(t *testing.T) { wireHeaders(t, s) })
	t.Run("methods", func(t *testing.T) { wireMethods(t, s) })
	t.Run("compression", func(t *testing.T) { wireCompression(t, s) })
	t.Run("events", func(t *testing.T) { wireEvents(t, s) })
	t.Run("characters over several tokens", func(t *testing.T) { wireCharacters(t, s) })
	t.Run("limits", func(t *testing.T) { wireLimits(t, s) })
}

func question(t *testing.T, text string, more map[string]any) string {
	t.Helper()
	b, err := json.Marshal(harness.Question(text, more))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func wireHeaders(t *testing.T, s *harness.Swarm) {
	short := map[string]any{"max_tokens": 3}
	for _, c := range []struct {
		name, body, kind string
		status           int
	}{
		{"whole", question(t, "Hello!", short), "application/json", 200},
		{"streamed", question(t, "Hello!", map[string]any{"max_tokens": 3, "stream": true}), "text/event-stream", 200},
		{"refused", `{}`, "application/json", 400},
	} {
		resp, _ := send(t, s, "POST", "/v1/chat/completions", c.body, map[string]string{"X-Request-Id": "mine-1", "Authorization": "Bearer none"})
		if resp.StatusCode != c.status || resp.Header.Get("Content-Type") != c.kind || resp.Header.Get("X-Request-Id") != "mine-1" {
			t.Errorf("%s: %d %v", c.name, resp.StatusCode, resp.Header)
		}
		if c.status == 200 && (resp.Header.Get("X-Hecate-Route") == "" || resp.Header.Get("X-Hecate-Exactness") != "exact") {
			t.Errorf("%s: %v, want route and exactness", c.name, resp.Header)
		}
	}
	resp, _ := send(t, s, "POST", "/v1/chat/completions", `{}`, map[string]string{"X-Request-Id": strings.Repeat("x", 200)})
	if id := resp.Header.Get("X-Request-Id"); !strings.HasPrefix(id, "req_") {
		t.Errorf("an endless request id gave %q, want one of ours", id)
	}
}

func wireMethods(t *testing.T, s *harness.Swarm) {
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"HEAD", "/v1/models", 200, ""},
		{"HEAD", "/healthz", 200, ""},
		{"OPTIONS", "/v1/models", 204, "GET, HEAD, OPTIONS"},
		{"OPTIONS", "/v1/chat/completions", 204, "POST, OPTIONS"},
		{"GET", "/v1/chat/completions", 405, "POST, OPTIONS"},
		{"DELETE", "/v1/models/" + harness.Model, 405, "GET, HEAD, OPTIONS"},
		{"GET", "/v1/nothing", 404, ""},
		{"OPTIONS", "/v1/nothing", 404, ""},
	} {
		resp, body := send(t, s, c.method, c.path, "", nil)
		if resp.StatusCode != c.status || resp.Header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, Allow %q; want %d, %q", c.method, c.path, resp.StatusCode, resp.Header.Get("Allow"), c.status, c.allow)
		}
		if c.status >= 400 && !strings.Contains(body, `"error":{"message":`) {
			t.Errorf("%s %s: %q is no error object", c.method, c.path, body)
		}
	}
}

// Events leave one by one, also to a client that would take them compressed.
func wireCompression(t *testing.T, s *harness.Swarm) {
	body := question(t, harness.Story, map[string]any{"max_tokens": 60, "stream": true})
	req, err := http.NewRequest("POST", s.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "gzip, deflate, br, zstd")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Encoding") != "" || resp.ContentLength != -1 {
		t.Errorf("%v, length %d", resp.Header, resp.ContentLength)
	}
	reads, buf := 0, make([]byte, 64<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			reads++
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if reads < 10 {
		t.Errorf("60 tokens came in %d pieces", reads)
	}
}

// events gives the data of each event of a stream.
func events(t *testing.T, s *harness.Swarm, path, body string) (data []string) {
	t.Helper()
	_, text := send(t, s, "POST", path, body, nil)
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if d, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = append(data, d)
		} else if lines.Text() != "" && !strings.HasPrefix(lines.Text(), ":") {
			t.Errorf("the line %q is neither data nor a comment", lines.Text())
		}
	}
	return data
}

// The order of events, for each choice: role, text, reason; then usage, then the end.
func wireEvents(t *testing.T, s *harness.Swarm) {
	data := events(t, s, "/v1/chat/completions", question(t, harness.Story, map[string]any{
		"max_tokens": 12, "n": 3, "temperature": 0.9, "seed": 4, "stream": true, "stream_options": map[string]bool{"include_usage": true},
	}))
	if data[len(data)-1] != "[DONE]" {
		t.Fatalf("the last event is %s", data[len(data)-1])
	}
	chunks := make([]openai.ChatChunk, len(data)-1)
	for i := range chunks {
		if err := json.Unmarshal([]byte(data[i]), &chunks[i]); err != nil {
			t.Fatalf("%s: %v", data[i], err)
		}
		if chunks[i].ID != chunks[0].ID || chunks[i].Created != chunks[0].Created || chunks[i].Model != harness.Model {
			t.Errorf("%s does not belong to %s", data[i], data[0])
		}
	}
	usage := chunks[len(chunks)-1]
	if len(usage.Choices) != 0 || usage.Usage == nil || usage.Usage.CompletionTokens > 36 || !strings.Contains(data[len(chunks)-1], `"choices":[]`) {
		t.Errorf("usage comes as %s", data[len(chunks)-1])
	}
	story := map[int]string{} // r(ole), t(ext), f(inish)
	for _, chunk := range chunks[:len(chunks)-1] {
		for _, c := range chunk.Choices {
			story[c.Index] += kindOf(c)
		}
	}
	for i := range 3 {
		if told := story[i]; !strings.HasPrefix(told, "rt") || !strings.HasSuffix(told, "tf") || strings.Trim(told[1:len(told)-1], "t") != "" {
			t.Errorf("choice %d came as %q", i, told)
		}
	}
}

func kindOf(c openai.ChunkChoice) string {
	switch {
	case c.FinishReason != nil:
		return "f"
	case c.Delta.Role != "":
		return "r"
	default:
		return "t"
	}
}

// An emoji is four tokens here: it must come whole, and bytes that make no
// character must not break the JSON around them.
func wireCharacters(t *testing.T, s *harness.Swarm) {
	ids := byteTokens(t, "😀")
	bias := map[string]int{}
	for _, id := range ids {
		bias[strconv.Itoa(int(id))] = 100
	}
	for name, more := range map[string]map[string]any{
		"only bytes":     {"logit_bias": bias},
		"bytes at times": {"logit_bias": halved(bias, 90)},
	} {
		more["model"], more["prompt"], more["max_tokens"], more["temperature"], more["seed"] = harness.Model, "A face: 😀😀", 40, 1.5, 3
		code, _, body := s.Post(context.Background(), "/v1/completions", withField(more, "logprobs", 0))
		var whole openai.Completion
		if err := json.Unmarshal(body, &whole); err != nil || code != 200 {
			t.Fatalf("%s: %d %s (%v)", name, code, body, err)
		}
		b, err := json.Marshal(withField(more, "stream", true))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, d := range events(t, s, "/v1/completions", string(b)) {
			var chunk openai.Completion
			if d == "[DONE]" {
				continue
			}
			if err := json.Unmarshal([]byte(d), &chunk); err != nil || !utf8.ValidString(d) {
				t.Errorf("%s: event %q: %v", name, d, err)
			}
			for _, c := range chunk.Choices {
				text.WriteString(c.Text)
			}
		}
		if text.String() != whole.Choices[0].Text || text.Len() == 0 {
			t.Errorf("%s: streamed %q, whole %q", name, text.String(), whole.Choices[0].Text)
		}
		if n := len(whole.Choices[0].Logprobs.Tokens); n != 40 {
			t.Errorf("%s: %d tokens in the log-probabilities, want 40", name, n)
		}
	}
	for text, prompt := range map[string]any{"😀é漢": "😀é漢", "😀": ids} {
		echo := map[string]any{"model": harness.Model, "prompt": prompt, "max_tokens": 1, "echo": true}
		if _, _, body := s.Post(context.Background(), "/v1/completions", echo); !bytes.Contains(body, []byte(`"text":"`+text)) {
			t.Errorf("the prompt %v came back as %s", prompt, body)
		}
	}
}

func halved(bias map[string]int, to int) map[string]int {
	out := map[string]int{}
	for k := range bias {
		out[k] = to
	}
	return out
}

func withField(m map[string]any, name string, value any) map[string]any {
	out := map[string]any{name: value}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// byteTokens are the demo model's tokens for the bytes of a text that it knows
// only by bytes.
func byteTokens(t *testing.T, text string) []int32 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "demo.gguf")
	if err := os.WriteFile(path, demomodel.GGUF(), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := tokens.OpenSource(path)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokens.New(source)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := tok.EncodePlain(text)
	if err != nil {
		t.Fatal(err)
	}
	ids = slices.DeleteFunc(ids, func(id int32) bool { return len(tok.TokenBytes(id)) != 1 || tok.TokenBytes(id)[0] < 0x80 })
	if len(ids) < 2 {
		t.Fatalf("%q is the tokens %v, want several of one byte", text, ids)
	}
	return ids
}

// More tokens than the context has room for are clipped, not refused.
func wireLimits(t *testing.T, s *harness.Swarm) {
	a := s.AskWith(t, "Hello!", map[string]any{"max_tokens": 1 << 30})
	if a.Choices[0].FinishReason != "stop" {
		t.Errorf("%s after %d tokens", a.Choices[0].FinishReason, a.Usage.CompletionTokens)
	}
	var m openai.Model
	s.Get("/v1/models/"+harness.Model, &m)
	b := s.AskWith(t, harness.Story, map[string]any{"max_tokens": 1 << 30, "logit_bias": map[string]int{}, "n": 2})
	if b.Usage.PromptTokens+b.Usage.CompletionTokens/2 > m.Hecate.ContextLength {
		t.Errorf("%+v in a context of %d", b.Usage, m.Hecate.ContextLength)
	}
}
