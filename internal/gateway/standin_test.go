package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/keys"
	"hecate/internal/event"
	"hecate/internal/gateway/admission"
	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/openai"
	"hecate/internal/metrics"
	"hecate/internal/stage"
	"hecate/swarm"
)

// troupe is a swarm of one-stage models on fake nodes.
type troupe struct {
	out  map[string]bool // models without a copy
	dies map[string]int  // the node of a model dies at this token
}

func (t *troupe) Choose(_ context.Context, n answer.Need) (answer.Grant, error) {
	if t.out[n.Model] {
		return answer.Grant{}, &admission.Refusal{Reason: admission.NotReady, Model: n.Model, Retry: 2 * time.Second, Because: swarm.ErrNoRoute}
	}
	layers := swarm.LayerRange{Last: n.Layers - 1}
	return answer.Grant{Route: swarm.Route{Model: n.Model, Stages: []swarm.Stage{{Node: "on-" + n.Model, Layers: layers}}}, Token: 1}, nil
}

func (t *troupe) Rescue(context.Context, answer.Need, answer.Grant, []answer.Failure, answer.Progress) (answer.Grant, answer.RescueKind, error) {
	return answer.Grant{}, "", swarm.ErrUnrecoverable
}

func (t *troupe) Around(answer.Need, swarm.Route, string) (answer.Grant, error) {
	return answer.Grant{}, swarm.ErrNoRoute
}
func (t *troupe) Release(answer.Grant) {}

func (t *troupe) Grow(context.Context, answer.Need, answer.Grant) error { return nil }
func (t *troupe) Observe(string, answer.Sample)                         {}
func (t *troupe) Patience(string, int, int) time.Duration               { return time.Minute }
func (t *troupe) Usual(string, int, int) (time.Duration, bool)          { return 0, false }
func (t *troupe) Alive(string) context.Context                          { return context.Background() }

func (t *troupe) Suspect(string) {}

// Open speaks to a node whose answer is the letters a, b, c...
func (t *troupe) Reopen(ctx context.Context, node string, opening []byte) (answer.Session, error) {
	return t.Open(ctx, node, opening, true)
}

func (t *troupe) Open(_ context.Context, node string, opening []byte, _ bool) (answer.Session, error) {
	o, err := stage.DecodeOpen(opening)
	if err != nil {
		return nil, err
	}
	if o.Resume {
		return nil, errors.New("connection refused")
	}
	last := -1
	if at, mortal := t.dies[o.Model]; mortal {
		last = at
	}
	opened, err := stage.Opened{Width: 1, MaxRows: 64}.Encode()
	return &actor{queue: [][]byte{opened}, prompt: o.Sampler.Prompt, last: last}, err
}

type actor struct {
	queue  [][]byte
	prompt int
	last   int // the token before which it dies; -1: it does not
}

func (a *actor) Send(_ context.Context, b []byte) error {
	s, err := stage.DecodeStep(b)
	if err != nil {
		return err
	}
	r := stage.Result{Kind: stage.KindDone, Position: s.Position, Rows: s.Rows()}
	if s.Want == stage.WantToken {
		n := s.Position + s.Rows() - a.prompt
		if n == a.last {
			return errors.New("connection reset")
		}
		r.Kind, r.Token.ID = stage.KindToken, int32('a'+n)
	}
	a.queue = append(a.queue, r.Append(nil))
	return nil
}

func (a *actor) Recv(context.Context) ([]byte, error) {
	b := a.queue[0]
	a.queue = a.queue[1:]
	return b, nil
}
func (a *actor) Recycle([]byte) {}
func (a *actor) End(bool)       {}
func (a *actor) Abandon()       {}

// letters is a language of bytes.
type letters struct{ Text }

func (letters) EncodeChat(_ context.Context, turns []Turn, _ json.RawMessage) ([]int32, error) {
	return letters{}.Encode(turns[0].Content)
}

func (letters) Encode(text string) (ids []int32, err error) {
	for _, b := range []byte(text) {
		ids = append(ids, int32(b))
	}
	return ids, nil
}
func (letters) IsEnd(int32) bool                { return false }
func (letters) Vocabulary() int                 { return 256 }
func (letters) Pooling() Pooling                { return Pooling{} }
func (letters) Bytes(id int32) []byte           { return []byte{byte(id)} }
func (letters) Speak([]string) (Speaker, error) { return letters{}, nil }
func (letters) Add(id int32) (string, bool)     { return string(rune(id)), false }
func (letters) Rest() string                    { return "" }

// standInGateway is a gateway with the models big and small, of which small stands in.
func standInGateway(t *troupe) *Gateway {
	g := &Gateway{log: slog.New(slog.DiscardHandler), events: event.New(0), traffic: newTraffic()}
	g.counts.rescues = map[answer.RescueKind]int64{}
	g.metrics = metrics.New(metrics.Sources{})
	g.usable = func(m *Model) bool { return !t.out[m.Record.ID] }
	g.runner = &answer.Runner{Router: t, Opener: t, Limits: answer.Limits{RescueTime: time.Nanosecond}, Events: g.witness}
	for id, of := range map[string]string{"big": "", "small": "big", "other": ""} {
		spec := swarm.ModelSpec{ID: id, Layers: 4, ContextTokens: 1000, FallbackFor: of}
		g.catalog.put(&Model{Record: control.ModelRecord{ID: id, ContextLength: 100, Quantisation: "Q8_0", Spec: spec}, Text: letters{}})
	}
	return g
}

// asked is what a client sends and what it gets.
type asked struct {
	path, more string
	header     map[string]string
}

func (a asked) of(t *testing.T, g *Gateway) (*http.Response, string) {
	t.Helper()
	srv := httptest.NewServer(g.routes())
	defer srv.Close()
	body := `{"model":"big","max_tokens":3,` + a.more + `"messages":[{"role":"user","content":"hi"}]}`
	if a.path == "/v1/completions" && !strings.Contains(a.more, `"prompt"`) {
		body = `{"model":"big","max_tokens":3,` + a.more + `"prompt":"hi"}`
	} else if a.path == "/v1/completions" {
		body = `{"model":"big","max_tokens":3,` + strings.TrimSuffix(a.more, ",") + `}`
	}
	req, err := http.NewRequest("POST", srv.URL+a.path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range a.header {
		req.Header.Set(k, v)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		text = fmt.Appendf(text, "(%v)", err)
	}
	return resp, string(text)
}

const chatPath, completionPath = "/v1/chat/completions", "/v1/completions"

// A model that cannot be served is answered for by its declared fallback, which
// says so.
func TestAFallbackModelAnswers(t *testing.T) {
	for name, play := range map[string]*troupe{
		"not ready":                   {out: map[string]bool{"big": true}},
		"lost before the first token": {dies: map[string]int{"big": 0}},
	} {
		for _, a := range []asked{{path: chatPath}, {path: chatPath, more: `"n":2,`}, {path: completionPath}} {
			g := standInGateway(play)
			resp, text := a.of(t, g)
			var body struct {
				Model  string
				Hecate openai.Hecate
			}
			if err := json.Unmarshal([]byte(text), &body); err != nil || resp.StatusCode != 200 {
				t.Fatalf("%s, %s: %d %s, %v", name, a.path, resp.StatusCode, text, err)
			}
			if got := resp.Header.Get(degradedHeader); got != "big" || body.Model != "small" || body.Hecate.Degraded != "big" {
				t.Errorf("%s, %s: header %q, body %s", name, a.path, got, text)
			}
			if !strings.Contains(text, "abc") || g.counts.degraded != 1 || g.counts.lost.Load() != 0 {
				t.Errorf("%s, %s: %s, %d degraded, %d lost", name, a.path, text, g.counts.degraded, g.counts.lost.Load())
			}
		}
		for _, path := range []string{chatPath, completionPath} {
			resp, text := asked{path: path, more: `"stream":true,`}.of(t, standInGateway(play))
			if resp.Header.Get(degradedHeader) != "big" || resp.Trailer.Get(degradedHeader) != "big" ||
				!strings.Contains(text, `"degraded":"big"`) || strings.Contains(text, `"model":"big"`) || !strings.Contains(text, "[DONE]") {
				t.Errorf("%s, stream of %s: %v, trailer %v\n%s", name, path, resp.Header, resp.Trailer, text)
			}
		}
	}
}

// The model that was asked for answers by itself as soon as it can.
func TestTheAskedModelReturns(t *testing.T) {
	play := &troupe{out: map[string]bool{"big": true}}
	g := standInGateway(play)
	if resp, text := (asked{path: chatPath}).of(t, g); resp.Header.Get(degradedHeader) != "big" {
		t.Fatal(text)
	}
	play.out = nil
	resp, text := asked{path: chatPath}.of(t, g)
	if resp.Header.Get(degradedHeader) != "" || !strings.Contains(text, `"model":"big"`) || strings.Contains(text, "degraded") {
		t.Errorf("%v %s", resp.Header, text)
	}
}

// Who does not want another model's words does not get them.
func TestNoFallback(t *testing.T) {
	out := map[string]bool{"big": true}
	for name, c := range map[string]struct {
		asked
		play   *troupe
		status int
	}{
		"refused by header":         {asked{path: chatPath, header: map[string]string{fallbackHeader: "never"}}, &troupe{out: out}, 503},
		"refused in the body":       {asked{path: chatPath, more: `"hecate":{"fallback":false},`}, &troupe{out: out}, 503},
		"biases of tokens":          {asked{path: chatPath, more: `"logit_bias":{"97":-100},`}, &troupe{out: out}, 503},
		"a prompt of tokens":        {asked{path: completionPath, more: `"prompt":[1,2],`}, &troupe{out: out}, 503},
		"no fallback is ready":      {asked{path: chatPath}, &troupe{out: map[string]bool{"big": true, "small": true}}, 503},
		"the fallback dies too":     {asked{path: chatPath}, &troupe{out: out, dies: map[string]int{"small": 0}}, 503},
		"the middle of an answer":   {asked{path: chatPath}, &troupe{dies: map[string]int{"big": 1}}, 503},
		"a header that is nonsense": {asked{path: chatPath, header: map[string]string{fallbackHeader: "maybe"}}, &troupe{}, 400},
	} {
		resp, text := c.of(t, standInGateway(c.play))
		if resp.StatusCode != c.status || resp.Header.Get(degradedHeader) != "" || strings.Contains(text, `"small"`) {
			t.Errorf("%s: %d, %v, %s; want %d", name, resp.StatusCode, resp.Header, text, c.status)
		}
	}
}

// A key that is for certain models only gets no answer of another one.
func TestAStandInThatTheKeyIsNotFor(t *testing.T) {
	g := standInGateway(&troupe{out: map[string]bool{"big": true}})
	w := wish{id: "x", model: g.catalog.find("big"), reword: func(m *Model) (wish, *openai.Error) { return wish{model: m}, nil }}
	for _, c := range []struct {
		models []string
		want   int
	}{{nil, 1}, {[]string{"big", "small"}, 1}, {[]string{"big"}, 0}} {
		ctx := withKey(t.Context(), &bound{record: &keys.Record{Models: c.models}})
		if got := g.standIns(ctx, w); len(got) != c.want {
			t.Errorf("a key for %v: %d stand-ins, want %d", c.models, len(got), c.want)
		}
	}
}

// In the middle of a stream another model never goes on.
func TestAStreamNeverChangesItsModel(t *testing.T) {
	g := standInGateway(&troupe{dies: map[string]int{"big": 1}})
	resp, text := asked{path: chatPath, more: `"stream":true,`}.of(t, g)
	if resp.StatusCode != 200 || !strings.Contains(text, `"no_way_on"`) || strings.Contains(text, "[DONE]") || strings.Contains(text, `"small"`) {
		t.Errorf("%d\n%s", resp.StatusCode, text)
	}
	if !strings.Contains(text, "(unexpected EOF)") {
		t.Errorf("the connection ended like that of a whole answer:\n%s", text)
	}
	if g.counts.lost.Load() != 1 || g.counts.degraded != 0 {
		t.Errorf("%d lost, %d degraded", g.counts.lost.Load(), g.counts.degraded)
	}
}
