package engines

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"hecate/internal/control"
)

// large is a request of about so many bytes, with fields that nobody here knows.
func large(n int) string {
	return `{ "zz_unknown" : {"model":"no","a":[1,2.50,"\u00e9\"}"]},"model" : "m","messages":[{"role":"user","content":"` + strings.Repeat("grüße \\n", n/9) + "\"}],\t\"big\":1234567890123456789012 }\n"
}

// Bodies arrive as they were sent, byte for byte, whatever their size and however
// they were cut; only the name of the model changes where it has an alias.
func TestBodiesPassByteForByte(t *testing.T) {
	h := newHouse(t, Config{})
	var got atomic.Pointer[[]byte]
	url := server(t, "m", func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got.Store(&b)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{ "choices" : [] , "unknown":1e400 }`)
	})
	h.engine(control.EngineRecord{ID: "a", URL: url, Aliases: map[string]string{"call me \u00e9": "m"}})
	for _, size := range []int{100, 5 << 10, 130 << 10, 5 << 20} {
		for _, chunked := range []bool{false, true} {
			body := large(size)
			var in io.Reader = strings.NewReader(body)
			if chunked {
				in = io.MultiReader(strings.NewReader(body[:len(body)/3]), strings.NewReader(body[len(body)/3:]))
			}
			r := h.send("/v1/chat/completions", in)
			if r.status != 200 || r.body != `{ "choices" : [] , "unknown":1e400 }` {
				t.Fatalf("%d bytes, chunked %v: %d %q %v", size, chunked, r.status, r.body, r.err)
			}
			if string(*got.Load()) != body {
				t.Errorf("%d bytes, chunked %v: the engine got other bytes", size, chunked)
			}
			r = h.post("/v1/embeddings", strings.Replace(body, `: "m"`, `: "call me \u00e9"`, 1))
			if want := strings.Replace(body, `: "m"`, `: "m"`, 1); r.status != 200 || string(*got.Load()) != want {
				t.Errorf("%d bytes by an alias: %d, other bytes", size, r.status)
			}
		}
	}
}

func TestBodiesThatAreTooLargeOrNone(t *testing.T) {
	h := newHouse(t, Config{})
	h.engine(control.EngineRecord{ID: "a", URL: server(t, "m", func(http.ResponseWriter, *http.Request) {})})
	for body, want := range map[string]string{
		"":                             "400 invalid_json",
		"[]":                           "400 invalid_json",
		`{"model":"m"`:                 "400 invalid_json",
		`{"model":"m"} {}`:             "400 invalid_json",
		`{"model":7}`:                  "400 invalid_type",
		`{"model":"m","model":"n"}`:    "400 invalid_value",
		`{"model":"m","mod\u0065l":1}`: "400 invalid_value",
		`{"Model":"m","model":"n"}`:    "400 invalid_value",
		`{"model":"unheard of"}`:       "503 not_ready",
		`{}`:                           "503 not_ready",
	} {
		r := h.post("/v1/chat/completions", body)
		var e struct{ Error struct{ Code string } }
		_ = json.Unmarshal([]byte(r.body), &e)
		if got := fmt.Sprint(r.status, " ", e.Error.Code); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if r := h.send("/v1/chat/completions", io.LimitReader(spaces{}, MaxBody+1)); r.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body over the limit: %d", r.status)
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// story is a stream with characters of every length, comments, CRLF, quotes of
// what would be a finish reason, and an event of several lines.
const story = ": hello\r\n\r\n" +
	`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n" +
	`data: {"choices":[{"index":0,"delta":{"content":"é€𝄞 \"finish_reason\":\"stop\" "}}]}` + "\n\n" +
	"event: x\r\nid: 7\r\n" + `data: {"choices":[{"index":0,"delta":{"content":"日本"}}]}` + "\r\n\r\n" +
	`data:{"choices":[{"index":0,"delta":{},"finish_reason" : "stop"}]}` + "\n\n" +
	"data: [DONE]\n\n"

// Wherever a stream is cut on its way, the client gets the same bytes; and
// wherever it ends before its time, the client sees no whole answer.
func TestStreamsCutAtEveryByte(t *testing.T) {
	h := newHouse(t, Config{})
	var cut atomic.Int64
	var stops atomic.Bool
	url := server(t, "m", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("the engine was asked for %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		n := cut.Load()
		_, _ = io.WriteString(w, story[:n])
		_ = http.NewResponseController(w).Flush()
		if !stops.Load() {
			_, _ = io.WriteString(w, story[n:])
		}
	})
	// One engine would have its circuit opened by so many broken streams.
	finish := strings.Index(story, "data: [DONE]")
	for n := range len(story) {
		cut.Store(int64(n))
		stops.Store(false)
		id := "a" + fmt.Sprint(n%7)
		if n%7 == n {
			h.engine(control.EngineRecord{ID: id, URL: url})
		}
		r := h.post("/v1/chat/completions", `{"model":"m","stream":true}`, "Accept-Encoding", "gzip, br")
		if r.body != story || r.err != nil {
			t.Fatalf("cut at %d: %q %v", n, r.body, r.err)
		}
		if n%5 != 0 && n < finish-4 {
			continue
		}
		stops.Store(true)
		r = h.post("/v1/chat/completions", `{"model":"m","stream":true}`)
		whole := n >= finish-2 // the empty line behind the finish reason may be missing
		if ok := r.status == 200 && r.err == nil; ok != whole {
			t.Errorf("ended at %d of %d (finish at %d): status %d, %v: %q", n, len(story), finish, r.status, r.err, r.body)
		}
		h.room.mu.Lock()
		for _, e := range h.room.mu.by {
			e.circuit.Reset()
		}
		h.room.mu.Unlock()
	}
}

// Each event leaves when it has come: the engine waits for the client to have it.
func TestEventsAreNotHeldBack(t *testing.T) {
	h := newHouse(t, Config{})
	seen := make(chan struct{})
	url := server(t, "m", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 5 {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"%d\"}}]}\n\n", i)
			_ = http.NewResponseController(w).Flush()
			<-seen
		}
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	})
	h.engine(control.EngineRecord{ID: "a", URL: url})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/v1/chat/completions", strings.NewReader(`{"model":"m","stream":true}`))
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := h.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Encoding") != "" {
		t.Error("a compressed stream")
	}
	buf := make([]byte, 4096)
	for i := range 5 {
		n, err := resp.Body.Read(buf)
		if err != nil || !bytes.Contains(buf[:n], fmt.Appendf(nil, `"content":"%d"`, i)) {
			t.Fatalf("event %d: %q %v", i, buf[:n], err)
		}
		seen <- struct{}{}
	}
	if b, err := io.ReadAll(resp.Body); err != nil || !bytes.HasSuffix(b, []byte("[DONE]\n\n")) {
		t.Errorf("the end: %q %v", b, err)
	}
}

// What may be a credential of the client reaches neither engine nor log; what is
// the engine's own reaches it, and nobody else.
func TestCredentialsStayWhereTheyBelong(t *testing.T) {
	const canary, engineKey = "canary-7f3a", "engine-key-91c2"
	for name, c := range map[string]struct {
		rec       control.EngineRecord
		wantsKey  string
		passesKey bool
	}{
		"no key":      {rec: control.EngineRecord{}},
		"its own key": {rec: control.EngineRecord{KeyEnv: "ENGINE_KEY"}, wantsKey: "Bearer " + engineKey},
		"passed":      {rec: control.EngineRecord{PassKey: true}, wantsKey: "Bearer " + canary, passesKey: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, Config{Env: func(v string) (string, bool) { return engineKey, v == "ENGINE_KEY" }})
			var seen atomic.Pointer[string]
			url := server(t, "m", func(w http.ResponseWriter, r *http.Request) {
				var b bytes.Buffer
				_ = r.Write(&b)
				s := b.String()
				seen.Store(&s)
				if got := r.Header.Get("Authorization"); got != c.wantsKey {
					t.Errorf("the engine got %q, want %q", got, c.wantsKey)
				}
				w.Header().Set("Set-Cookie", "of=engine")
				w.Header().Set("X-Ratelimit-Remaining-Requests", "7")
				w.Header().Set("Connection", "X-Mine")
				w.Header().Set("X-Mine", "hop")
				w.Header().Set("Openai-Processing-Ms", "3")
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusInternalServerError) // so that it is logged as well
				_, _ = io.WriteString(w, `{"error":{"message":"no"}}`)
			})
			c.rec.ID, c.rec.URL = "a", url
			h.engine(c.rec)
			r := h.post("/v1/chat/completions?api_key="+canary+"&access_token="+canary+"&a%70i-key="+canary+"&api-version=7", `{"model":"m"}`,
				"Authorization", "Bearer "+canary, "X-Api-Key", canary, "Api-Key", canary, "Cookie", "session="+canary, "Proxy-Authorization", "Basic "+canary,
				"X-Goog-Api-Key", canary, "Openai-Organization", canary, "X-Auth-Token", canary, "Te", "trailers", "X-Other", canary, "Openai-Beta", "assistants=v2")
			if r.status != http.StatusInternalServerError {
				t.Fatalf("%d %s", r.status, r.body)
			}
			got := *seen.Load()
			if n := strings.Count(got, canary); n != 0 && !(c.passesKey && n == 1) {
				t.Errorf("the engine saw the client's credential %d times:\n%s", n, got)
			}
			if !strings.Contains(got, "api-version=7") || !strings.Contains(got, "assistants=v2") {
				t.Errorf("what is no credential is missing:\n%s", got)
			}
			for _, secret := range []string{canary, engineKey} {
				if strings.Contains(h.log.String(), secret) || strings.Contains(fmt.Sprint(r.header, r.body), secret) {
					t.Errorf("%s stands in the log or in the answer", secret)
				}
			}
			for _, name := range []string{"Set-Cookie", "X-Ratelimit-Remaining-Requests", "X-Mine"} {
				if r.header.Get(name) != "" {
					t.Errorf("the engine's %s reached the client", name)
				}
			}
			if r.header.Get("Openai-Processing-Ms") != "3" {
				t.Error("a header that concerns the answer is missing")
			}
		})
	}
}

// Gateways that are each other's engines do not send a request round for ever.
func TestLoopsEnd(t *testing.T) {
	h := newHouse(t, Config{})
	var asked atomic.Int64
	url := server(t, "m", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		h.serve(w, r)
	})
	h.engine(control.EngineRecord{ID: "a", URL: url})
	r := h.post("/v1/chat/completions", `{"model":"m"}`)
	if r.status != 503 || !strings.Contains(r.body, "too many gateways") || asked.Load() > mostHops {
		t.Errorf("%d %s after %d rounds", r.status, r.body, asked.Load())
	}
}

func FuzzObject(f *testing.F) {
	f.Add([]byte(`{"model":"a","x":{"y":[1,"\\"]},"stream":true}`))
	f.Add([]byte(story))
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := sha256.Sum256(body)
		var keys []string
		err := object(body, func(key []byte, v span) error {
			if v.from < 0 || v.to > len(body) || v.from >= v.to {
				t.Fatalf("a value at %v of %d bytes", v, len(body))
			}
			keys = append(keys, string(key))
			return nil
		})
		if json.Valid(body) && bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
			if err != nil {
				t.Fatalf("valid JSON is refused: %v", err)
			}
			var want map[string]json.RawMessage
			if json.Unmarshal(body, &want) == nil && len(want) > len(keys) {
				t.Fatalf("fields %d, found %v", len(want), keys)
			}
		}
		var facts facts
		if n := facts.look(body, chat); n < 0 || n > len(body) {
			t.Fatalf("%d of %d bytes are sound", n, len(body))
		}
		openingOf(body, chat)
		if sha256.Sum256(body) != sum {
			t.Fatal("looking changed it")
		}
	})
}

// An engine that is registered again as it was keeps what is known of it; another
// record makes another engine.
func TestRegisteringAgain(t *testing.T) {
	h := newHouse(t, Config{})
	rec := control.EngineRecord{ID: "a", URL: server(t, "m", func(http.ResponseWriter, *http.Request) {}), Version: 1}
	h.engine(rec)
	of := func() *engine {
		h.room.mu.Lock()
		defer h.room.mu.Unlock()
		return h.room.mu.by["a"]
	}
	first := of()
	if err := h.room.Add(t.Context(), first.rec); err != nil {
		t.Fatal(err)
	}
	if of() != first {
		t.Error("the same record made another engine")
	}
	changed := first.rec
	changed.Parallel = 3
	if err := control.PutEngine(t.Context(), h.room.cfg.Store, &changed); err != nil {
		t.Fatal(err)
	}
	h.until(func() bool { e := of(); return e != nil && e != first })
	if err := control.RemoveEngine(t.Context(), h.room.cfg.Store, "a"); err != nil {
		t.Fatal(err)
	}
	h.until(func() bool { return !h.room.Any() && !h.room.Has("m") && len(h.room.Models()) == 0 })
}
