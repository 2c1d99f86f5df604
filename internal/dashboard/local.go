package dashboard

import (
	"context"

	"google.golang.org/grpc"
)

// A localStream takes the pieces of an answer from a service in this process: what
// would be a connection is a call.
type localStream[T any] struct {
	grpc.ServerStream                 // nil: services that send and look at the context need no more
	ctx               context.Context //nolint:containedctx // it is the stream's
	send              func(*T) error
}

func (s *localStream[T]) Context() context.Context { return s.ctx }

func (s *localStream[T]) Send(piece *T) error { return s.send(piece) }
