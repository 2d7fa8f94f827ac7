// Package trace sends what a request spent its time on to an OpenTelemetry
// collector: one span for the HTTP request, below it the waiting, the opening of
// the route, each stage's runs of steps, every rescue, and the answer as a
// whole. A request that brings a traceparent header continues its caller's
// trace.
//
// Spans are per request and stage, never per token, and leave in batches from a
// bounded queue: a collector that is slow or gone costs spans, not answers.
// Prompts, answers and keys are in none of them.
package trace
