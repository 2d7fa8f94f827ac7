package trace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Config says where spans go.
type Config struct {
	// Endpoint is the collector's URL, http or https; without a path, spans go to
	// /v1/traces. What a collector wants for authentication comes from the
	// environment, OTEL_EXPORTER_OTLP_HEADERS: URLs end up in process lists.
	Endpoint string
	// Ratio of the traces that begin here and are kept, 0 to 1. A caller's own
	// decision, in its traceparent header, goes before.
	Ratio   float64
	Gateway string // this gateway's id in the swarm
	Version string
	Log     *slog.Logger
}

// Check says what is wrong with the endpoint or the ratio.
func (c Config) Check() error {
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("a collector is named as http://HOST:PORT or https://HOST:PORT, not %q", c.Endpoint)
	case u.User != nil:
		return errors.New("put what the collector wants for authentication into OTEL_EXPORTER_OTLP_HEADERS, not into its URL")
	case !(c.Ratio >= 0 && c.Ratio <= 1):
		return fmt.Errorf("the share of traces to keep is %v, want 0 to 1", c.Ratio)
	}
	return nil
}

// Exporter turns the spans of answers into OpenTelemetry's and sends them. Its
// methods may be called from any goroutine and do not block.
type Exporter struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	headers  propagation.TraceContext
}

// Bounds of the queue of spans: what does not fit is dropped.
const (
	queueSpans = 4096
	batchSpans = 512
	batchWait  = 2 * time.Second
	sendTime   = 5 * time.Second
)

// Start begins to export. Close ends it. The collector need not be there yet.
func Start(ctx context.Context, cfg Config) (*Exporter, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	to := cfg.Endpoint
	if u, err := url.Parse(to); err == nil && (u.Path == "" || u.Path == "/") {
		to = u.JoinPath("v1", "traces").String()
	}
	out, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to), otlptracehttp.WithTimeout(sendTime))
	if err != nil {
		return nil, fmt.Errorf("export traces to %s: %w", cfg.Endpoint, err)
	}
	complain(cfg.Log)
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(out, sdk.WithMaxQueueSize(queueSpans), sdk.WithMaxExportBatchSize(batchSpans), sdk.WithBatchTimeout(batchWait)),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(cfg.Ratio))),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "hecate"), attribute.String("service.version", cfg.Version),
			attribute.String("service.instance.id", cfg.Gateway))),
	)
	return &Exporter{provider: provider, tracer: provider.Tracer("hecate/gateway")}, nil
}

// complainEvery bounds how often a collector that is not there is mentioned.
const complainEvery = time.Minute

// complain sends the library's errors to the log, now and then. The library has
// one place for them per process.
func complain(log *slog.Logger) {
	var last atomic.Int64
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		now, before := time.Now().Unix(), last.Load()
		if now-before >= int64(complainEvery/time.Second) && last.CompareAndSwap(before, now) {
			log.Warn("traces cannot be sent", "because", err)
		}
	}))
}

// Close sends what is queued, for as long as ctx lets it, and ends the export.
func (e *Exporter) Close(ctx context.Context) error {
	if err := e.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}
