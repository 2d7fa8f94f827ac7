package trace

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	pb "go.opentelemetry.io/proto/otlp/trace/v1"

	"hecate/internal/gateway/answer"
	"hecate/internal/trace/tracetest"
	"hecate/swarm"
)

func start(t *testing.T, c *tracetest.Collector, ratio float64) *Exporter {
	t.Helper()
	e, err := Start(context.Background(), Config{Endpoint: c.URL, Ratio: ratio, Gateway: "gw", Version: "1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// request sends one through Around, to a handler that answers with spans.
func request(e *Exporter, path, traceparent string, h http.HandlerFunc) {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader("secret prompt"))
	r.Header.Set("Authorization", "Bearer secret-key")
	if traceparent != "" {
		r.Header.Set("traceparent", traceparent)
	}
	defer func() { _ = recover() }()
	e.Around(h).ServeHTTP(httptest.NewRecorder(), r)
}

func TestARequestIsATrace(t *testing.T) {
	c := tracetest.New(t)
	e := start(t, c, 0) // the caller decides
	began := time.Now().Add(-time.Second)
	request(e, "/v1/chat/completions", parent, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "req_7")
		e.Span(r.Context(), answer.Span{Kind: answer.SpanStage, Job: "req_7", Model: "m", Began: began, Ended: began.Add(300 * time.Millisecond),
			Node: "mini", Layers: swarm.LayerRange{First: 2, Last: 5}, Phase: answer.Decode, Steps: 9, Rows: 9})
		e.Span(r.Context(), answer.Span{Kind: answer.SpanRescue, Job: "req_7", Model: "m", Began: began, Ended: time.Now(), Node: "desk", Rescue: answer.Splice, Position: 31, Replayed: 30})
		e.Span(r.Context(), answer.Span{Kind: answer.SpanAnswer, Job: "req_7", Model: "m", Began: began, Ended: time.Now(), Tokens: 12, Rescues: 1, Err: errors.New("no way left")})
		w.WriteHeader(http.StatusOK)
	})
	if err := e.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	all := c.Spans("")
	if len(all) != 4 {
		t.Fatalf("%d spans: %v", len(all), all)
	}
	root := c.Spans("POST /v1/chat/completions")[0]
	if hex.EncodeToString(root.ParentSpanId) != "b7ad6b7169203331" {
		t.Errorf("the request's span hangs on %x", root.ParentSpanId)
	}
	for _, s := range all {
		if hex.EncodeToString(s.TraceId) != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is of trace %x", s.Name, s.TraceId)
		}
		if s != root && string(s.ParentSpanId) != string(root.SpanId) {
			t.Errorf("%s does not hang on the request", s.Name)
		}
	}
	stage := c.Spans("decode mini")[0]
	if d := time.Duration(stage.EndTimeUnixNano - stage.StartTimeUnixNano); d != 300*time.Millisecond {
		t.Errorf("the stage's span takes %v", d)
	}
	if v := tracetest.Attribute(stage, "hecate.layers"); v.GetStringValue() != "2-5" {
		t.Errorf("layers %v", v)
	}
	if v := tracetest.Attribute(c.Spans("rescue from desk")[0], "hecate.replayed"); v.GetIntValue() != 30 {
		t.Errorf("replayed %v", v)
	}
	if a := c.Spans("answer")[0]; a.Status.Code != pb.Status_STATUS_CODE_ERROR || a.Status.Message != "no way left" {
		t.Errorf("the answer's status is %v", a.Status)
	}
	for _, secret := range []string{"secret prompt", "secret-key"} {
		if c.Mentions(secret) {
			t.Errorf("%q was sent", secret)
		}
	}
}

func TestABrokenConnectionIsAnError(t *testing.T) {
	c := tracetest.New(t)
	e := start(t, c, 1)
	request(e, "/v1/completions", "", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("data: {}\n\n"))
		panic(http.ErrAbortHandler)
	})
	request(e, "/v1/anything/else", "", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	_ = e.Close(context.Background())
	for name, what := range map[string]string{"POST /v1/completions": "broken off", "POST /v1/*": "status 503"} {
		spans := c.Spans(name)
		if len(spans) != 1 || spans[0].Status.GetMessage() != what {
			t.Errorf("%s: %v", name, spans)
		}
	}
}

func TestWhatIsNotTraced(t *testing.T) {
	c := tracetest.New(t)
	e := start(t, c, 0) // no trace begins here
	for _, path := range []string{"/v1/chat/completions", "/v1/swarm/chaos/arm"} {
		request(e, path, "", func(w http.ResponseWriter, r *http.Request) {
			e.Span(r.Context(), answer.Span{Kind: answer.SpanAnswer, Began: time.Now(), Ended: time.Now()})
			w.WriteHeader(http.StatusOK)
		})
	}
	request(e, "/v1/swarm/chaos/arm", parent, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	_ = e.Close(context.Background())
	if spans := c.Spans(""); len(spans) != 0 {
		t.Errorf("%v", spans)
	}
}

func TestBadEndpoints(t *testing.T) {
	for endpoint, ok := range map[string]bool{
		"http://127.0.0.1:4318": true, "https://collector.example/otlp/v1/traces": true,
		"": false, "127.0.0.1:4318": false, "grpc://127.0.0.1:4317": false, "http://user:word@127.0.0.1:4318": false,
	} {
		if err := (Config{Endpoint: endpoint, Ratio: 1}).Check(); (err == nil) != ok {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
	if (Config{Endpoint: "http://127.0.0.1:4318", Ratio: 1.5}).Check() == nil {
		t.Error("a share of 1.5 was taken")
	}
}
