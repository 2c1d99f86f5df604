package statemove

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"
)

// Both sides of a move are parts of one trace: the source says in the metadata of its call
// which span it is in, as W3C Trace Context has it. That is so whatever propagator the
// process has, because nobody but we speak here.

// withOrigin returns the context of a call that says which span it comes from.
func withOrigin(ctx context.Context) context.Context {
	said := make(propagation.MapCarrier)
	propagation.TraceContext{}.Inject(ctx, said)
	for key, value := range said {
		ctx = metadata.AppendToOutgoingContext(ctx, key, value)
	}
	return ctx
}

// originOf returns the span that a call comes from; an invalid one if it does not say.
func originOf(ctx context.Context) trace.SpanContext {
	said := make(propagation.MapCarrier)
	for _, key := range (propagation.TraceContext{}).Fields() {
		if values := metadata.ValueFromIncomingContext(ctx, key); len(values) > 0 {
			said[key] = values[0]
		}
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), said))
}
