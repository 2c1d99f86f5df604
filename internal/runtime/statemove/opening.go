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

// openingKey is the metadata key of a source's TransferOpening. It is not a message, because gRPC
// allocates memory for a message before the server can authorize its sender.
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
		return nil, status.Errorf(codes.InvalidArgument, "call rejected: it has %d values of metadata %s, want one", len(values), openingKey)
	}
	o := new(leaseholdv1.TransferOpening)
	if err := proto.Unmarshal([]byte(values[0]), o); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "call rejected: the metadata %s is not a TransferOpening: %v", openingKey, err)
	}
	return o, nil
}

// withOrigin adds the trace span of the source to the metadata of a call, as W3C Trace Context, so that
// both ends of a move are in one trace. It does not depend on the propagator of the process: both ends are
// this package.
func withOrigin(ctx context.Context) context.Context {
	carrier := make(propagation.MapCarrier)
	propagation.TraceContext{}.Inject(ctx, carrier)
	for key, value := range carrier {
		ctx = metadata.AppendToOutgoingContext(ctx, key, value)
	}
	return ctx
}

// originOf returns the trace span of the source, an invalid one if it has none.
func originOf(ctx context.Context) trace.SpanContext {
	carrier := make(propagation.MapCarrier)
	for _, key := range (propagation.TraceContext{}).Fields() {
		if values := metadata.ValueFromIncomingContext(ctx, key); len(values) > 0 {
			carrier[key] = values[0]
		}
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}
