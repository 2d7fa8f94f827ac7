package cli

import (
	"context"
	"time"

	"hecate/internal/gateway"
	"hecate/internal/trace"
)

// traceFlags say where traces go.
type traceFlags struct {
	OTLP      string  `help:"Send traces to the OpenTelemetry collector at this address, as OTLP over HTTP, usually http://HOST:4318." name:"otlp" env:"OTEL_EXPORTER_OTLP_ENDPOINT" placeholder:"URL"`
	OTLPShare float64 `help:"Which share of the traces that begin here is kept, 0 to 1." name:"otlp-share" default:"1"`
}

func (t *traceFlags) check() error {
	if t.OTLP == "" {
		return nil
	}
	if err := (trace.Config{Endpoint: t.OTLP, Ratio: t.OTLPShare}).Check(); err != nil {
		return usage("--otlp: %w", err)
	}
	return nil
}

// openTrace begins to export traces, if that is wanted, and lets the gateway
// know.
func (h *host) openTrace(ctx context.Context, cfg *gateway.Config) error {
	t := h.cfg.trace
	if t.OTLP == "" {
		return nil
	}
	out, err := trace.Start(ctx, trace.Config{Endpoint: t.OTLP, Ratio: t.OTLPShare, Gateway: cfg.Name, Version: cfg.Version, Log: cfg.Log})
	if err != nil {
		return err
	}
	h.trace, cfg.Tracer, cfg.Around = out, out, out.Around
	return nil
}

// lastTraces is how long the end of a gateway may wait for its collector.
const lastTraces = 2 * time.Second

func (h *host) closeTrace() {
	if h.trace == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastTraces)
	defer cancel()
	if err := h.trace.Close(ctx); err != nil {
		h.cfg.log.Warn("the last traces are lost", "because", err)
	}
}
