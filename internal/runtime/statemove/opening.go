package statemove

import (
	"context"

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

// withOpening returns the context of a call that is opened with o.
func withOpening(ctx context.Context, o *leaseholdv1.TransferOpening) (context.Context, error) {
	data, err := proto.Marshal(o)
	if err != nil {
		return nil, err
	}
	return metadata.AppendToOutgoingContext(ctx, openingKey, string(data)), nil
}

// openingOf returns what a call was opened with.
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
