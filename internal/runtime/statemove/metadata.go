package statemove

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// openingKey is the metadata that a source opens a stream with. It is not a
// message because a server allocates as much for a message as its sender
// announces, before it knows who that is.
const openingKey = "leasehold-opening-bin"

func withOpening(ctx context.Context, o *leaseholdv1.TransferOpening) (context.Context, error) {
	data, err := proto.Marshal(o)
	if err != nil {
		return nil, err
	}
	return metadata.AppendToOutgoingContext(ctx, openingKey, string(data)), nil
}

func openingOf(ctx context.Context) (*leaseholdv1.TransferOpening, error) {
	values := metadata.ValueFromIncomingContext(ctx, openingKey)
	if len(values) != 1 {
		return nil, status.Errorf(codes.InvalidArgument, "the call has %d times the metadata %s, want it once", len(values), openingKey)
	}
	o := new(leaseholdv1.TransferOpening)
	if err := proto.Unmarshal([]byte(values[0]), o); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "the metadata %s is no opening: %v", openingKey, err)
	}
	return o, nil
}

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
