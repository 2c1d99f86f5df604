package leasegrpc

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// stream is the interceptor of calls with a stream of requests or answers. Their
// key is in the header: a KeyField of the method is compared with it when the
// request comes.
func (s *server) stream(srv any, stream grpc.ServerStream, call *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	m := s.methods.find(call.FullMethod)
	if m.Unkeyed {
		return handle(srv, stream)
	}
	key, routed, err := header(stream.Context())
	if err == nil && !routed {
		err = leasehold.Errorf(opServe, leasehold.ErrInvalid, string(s.namespace), "the call has no key: want one in the header %s", keyHeader)
	}
	if err != nil {
		return s.mark(key, err)
	}
	lease, err := s.check(stream.Context(), key)
	if err != nil {
		return s.mark(key, err)
	}
	return s.seal(lease, s.under(lease, srv, stream, m, handle))
}

// under calls a handler with a context that ends when the lease does.
func (s *server) under(lease owner.Lease, srv any, stream grpc.ServerStream, m *method, handle grpc.StreamHandler) error {
	ctx, cancel := context.WithCancelCause(context.WithValue(stream.Context(), leaseKey{}, lease))
	var watching sync.WaitGroup
	watching.Go(func() {
		if s.owner.AwaitEnd(ctx, lease) == nil {
			cancel(s.ended(lease))
		}
	})
	defer watching.Wait()
	defer cancel(nil)
	return handle(srv, &leased{ServerStream: stream, server: s, lease: lease, ctx: ctx, path: m.path})
}

// leased is a stream of which no message and no early header leaves the server without
// its lease. What SetHeader and SetTrailer keep goes with the status, whatever it is:
// gRPC cannot take it back.
type leased struct {
	grpc.ServerStream
	server *server
	lease  owner.Lease
	ctx    context.Context // ends with the lease
	path   *fieldPath      // until the request has come; nil if the key is not in it
}

func (l *leased) Context() context.Context { return l.ctx }

// SendMsg sends a message if the lease was held until now.
func (l *leased) SendMsg(m any) error {
	if err := l.held(); err != nil {
		return err
	}
	return l.ServerStream.SendMsg(m)
}

// SendHeader sends the header if the lease was held until now.
func (l *leased) SendHeader(md metadata.MD) error {
	if err := l.held(); err != nil {
		return err
	}
	return l.ServerStream.SendHeader(md)
}

// held is the status of a stream whose lease has ended, nil if it has not.
func (l *leased) held() error {
	if l.server.owner.Held(l.lease) {
		return nil
	}
	return l.server.mark(l.lease.Key, l.server.ended(l.lease))
}

// RecvMsg receives a message, and compares the key in the first one.
func (l *leased) RecvMsg(m any) error {
	if err := l.ServerStream.RecvMsg(m); err != nil || l.path == nil {
		return err
	}
	key, err := l.path.key(m)
	if err == nil && key != l.lease.Key {
		err = leasehold.Errorf(opServe, leasehold.ErrInvalid, key.String(), "the call was routed by key %v, but this is the key of its field %q", l.lease.Key, l.path.text)
	}
	if err != nil {
		return l.server.mark(l.lease.Key, leasehold.Errorf(opServe, leasehold.ErrInvalid, string(l.server.namespace), "%w", err))
	}
	l.path = nil // there is one request
	return nil
}
