package trace

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Around gives each request to the API a span, below its caller's when the
// request names one. What only looks (status, metrics, the page) has none.
func (e *Exporter) Around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, "/v1/") || strings.HasPrefix(r.URL.Path, "/v1/swarm") {
			next.ServeHTTP(w, r)
			return
		}
		ctx := e.headers.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := e.tracer.Start(ctx, r.Method+" "+route(r.URL.Path), trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String("http.request.method", r.Method), attribute.String("url.path", r.URL.Path)))
		if !span.IsRecording() {
			next.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		seen := &witness{ResponseWriter: w}
		defer func() {
			p := recover()
			seen.tell(span, p)
			span.End()
			if p != nil {
				panic(p) // net/http aborts the connection
			}
		}()
		next.ServeHTTP(seen, r.WithContext(ctx))
	})
}

// routes are the paths that spans are named by; names from outside would give
// a collector no end of different spans.
var routes = []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/tokenize", "/v1/detokenize"}

func route(path string) string {
	if slices.Contains(routes, path) {
		return path
	}
	return "/v1/*"
}

// witness notes a response's status.
type witness struct {
	http.ResponseWriter
	status int
}

// Unwrap lets http.ResponseController through.
func (w *witness) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush lets the response out; handlers may ask for it by type.
func (w *witness) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

func (w *witness) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *witness) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// tell writes what became of a request. A handler that panicked broke the
// connection off: the client saw no clean end, whatever the status was.
func (w *witness) tell(span trace.Span, panicked any) {
	header := w.Header()
	span.SetAttributes(attribute.Int("http.response.status_code", w.status), attribute.String("hecate.request", header.Get("X-Request-Id")))
	if by := header.Get("X-Hecate-Rescues"); by != "" {
		span.SetAttributes(attribute.String("hecate.rescues", by))
	}
	switch {
	case panicked != nil:
		span.SetStatus(codes.Error, "broken off")
	case w.status >= http.StatusInternalServerError:
		span.SetStatus(codes.Error, fmt.Sprintf("status %d", w.status))
	}
}
