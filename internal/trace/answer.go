package trace

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"hecate/internal/gateway/answer"
)

// Span implements [answer.Tracer].
func (e *Exporter) Span(ctx context.Context, s answer.Span) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return
	}
	_, span := e.tracer.Start(ctx, spanName(s), trace.WithTimestamp(s.Began), trace.WithAttributes(attributes(s)...))
	if s.Err != nil {
		span.SetStatus(codes.Error, s.Err.Error())
	}
	span.End(trace.WithTimestamp(s.Ended))
}

func spanName(s answer.Span) string {
	switch s.Kind {
	case answer.SpanStage:
		return string(s.Phase) + " " + s.Node
	case answer.SpanRescue:
		return "rescue from " + s.Node
	}
	return string(s.Kind)
}

// attributes of a span; GenAI's names where there are any.
func attributes(s answer.Span) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("gen_ai.request.model", s.Model), attribute.String("hecate.answer", s.Job), attribute.String("hecate.kind", string(s.Kind)),
	}
	if s.Route != "" {
		out = append(out, attribute.String("hecate.route", s.Route))
	}
	if s.Node != "" {
		out = append(out, attribute.String("hecate.node", s.Node))
	}
	switch s.Kind {
	case answer.SpanStage:
		out = append(out,
			attribute.String("hecate.layers", fmt.Sprintf("%d-%d", s.Layers.First, s.Layers.Last)), attribute.String("hecate.phase", string(s.Phase)),
			attribute.Int("hecate.steps", s.Steps), attribute.Int("hecate.rows", s.Rows),
			attribute.Float64("hecate.node_queue_ms", ms(s.Timing.Queue)), attribute.Float64("hecate.node_compute_ms", ms(s.Timing.Compute)),
			attribute.Float64("hecate.slowest_step_ms", ms(s.Slow)))
	case answer.SpanRescue:
		out = append(out, attribute.String("hecate.rescue", string(s.Rescue)), attribute.Int("hecate.position", s.Position), attribute.Int("hecate.replayed", s.Replayed))
	case answer.SpanAnswer:
		out = append(out, attribute.Int("gen_ai.usage.output_tokens", s.Tokens), attribute.Int("hecate.rescues", s.Rescues))
	}
	return out
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
