package leasegrpc

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/keybalancer"
	"github.com/leasehold-dev/leasehold/internal/runtime/watcher"
)

func (c *client) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	call := c.describe(name, options)
	begin := func(ctx context.Context, more grpc.CallOption) (grpc.ClientStream, error) {
		return open(ctx, desc, cc, name, append(slices.Clip(options), more)...)
	}
	if !desc.ClientStreams {
		return &responseStream{client: c, call: call, name: name, ctx: ctx, open: begin}, nil
	}
	if err := call.find(name, nil); err != nil {
		return nil, err
	}
	ctx = setKeyHeader(ctx, call.key)
	var s *serverStream
	err := c.do(ctx, &call, func(_ context.Context, addr string) (err error) {
		s, err = c.openStream(ctx, call.key, addr, begin)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &requestStream{s}, nil
}

// An opener opens a stream with one more option.
type opener func(context.Context, grpc.CallOption) (grpc.ClientStream, error)

// A serverStream is a stream to one server. While an operation waits and the key moves to another
// server, the stream ends like a unary call. Its context is not that of the attempt of
// [lookup.Lookup.Do], which ends when the stream is open.
type serverStream struct {
	grpc.ClientStream
	client *client
	key    leasehold.Key
	addr   string
	call   context.Context
	ctx    context.Context // of the stream
	cancel context.CancelCauseFunc
}

func (c *client) openStream(ctx context.Context, key leasehold.Key, addr string, open opener) (*serverStream, error) {
	s := &serverStream{client: c, key: key, addr: addr, call: ctx}
	s.ctx, s.cancel = context.WithCancelCause(keybalancer.WithOwner(ctx, key, addr))
	defer s.watch().Stop()
	var err error
	s.ClientStream, err = open(s.ctx, grpc.OnFinish(func(error) { s.cancel(nil) }))
	if err != nil {
		s.cancel(nil)
		return nil, s.endedError(err)
	}
	return s, nil
}

// watch ends the stream after its key has moved.
func (s *serverStream) watch() *watcher.Watcher {
	return watcher.Owner(s.client.lookup, s.key, s.addr, s.cancel)
}

func (s *serverStream) endedError(err error) error {
	return s.client.endedError(s.call, s.ctx, s.addr, err)
}

func (s *serverStream) SendMsg(m any) error {
	defer s.watch().Stop()
	return s.endedError(s.ClientStream.SendMsg(m))
}

func (s *serverStream) RecvMsg(m any) error {
	defer s.watch().Stop()
	return s.endedError(s.ClientStream.RecvMsg(m))
}

func (s *serverStream) Header() (metadata.MD, error) {
	defer s.watch().Stop()
	md, err := s.ClientStream.Header()
	return md, s.endedError(err)
}

// A requestStream is a call with a stream of requests. It is not retried once it is open,
// because requests are not kept: the application gets a rejection, as
// [leasehold.ErrNotOwner], in place of the first response, and opens another stream.
type requestStream struct{ *serverStream }

func (d *requestStream) SendMsg(m any) error {
	return d.client.translateReceived(d.key, d.serverStream.SendMsg(m))
}

func (d *requestStream) RecvMsg(m any) error {
	return d.client.translateReceived(d.key, d.serverStream.RecvMsg(m))
}

func (d *requestStream) Header() (metadata.MD, error) {
	md, err := d.serverStream.Header()
	return md, d.client.translateReceived(d.key, err)
}

func (c *client) translateReceived(key leasehold.Key, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	if isRejectionOf(c.namespace, key, err) {
		c.lookup.Refresh()
	}
	return translate(c.namespace, key, err)
}

// A responseStream is a call with one request and a stream of responses. It is opened by
// SendMsg, because the request may have the key, and retried until the first response.
type responseStream struct {
	client *client
	call   call
	name   string
	ctx    context.Context // the call's
	open   opener

	mu       sync.Mutex // RecvMsg replaces current, which other methods read
	current  *serverStream
	request  any
	received bool // only RecvMsg uses it
}

// SendMsg opens the stream. Generated code sends the request before it returns the stream, so
// that SendMsg and RecvMsg are not concurrent.
func (a *responseStream) SendMsg(request any) error {
	if a.stream() != nil {
		return status.Errorf(codes.Internal, "%s takes one request", a.name)
	}
	if err := a.call.find(a.name, request); err != nil {
		return err
	}
	a.request, a.ctx = request, setKeyHeader(a.ctx, a.call.key)
	return a.client.do(a.ctx, &a.call, a.begin)
}

func (a *responseStream) begin(_ context.Context, addr string) error {
	s, err := a.client.openStream(a.ctx, a.call.key, addr, a.open)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.current = s
	a.mu.Unlock()
	if err := s.SendMsg(a.request); err != nil {
		if errors.Is(err, io.EOF) {
			return nil // the stream has ended; RecvMsg returns its status
		}
		return err
	}
	return s.CloseSend()
}

// stream returns the stream of the last attempt; nil before the first.
func (a *responseStream) stream() *serverStream {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current
}

// RecvMsg waits for the next response. Before the first response, the call is retried like a
// unary one. It reads from the open stream first, even if the key has moved: the response may
// have arrived.
func (a *responseStream) RecvMsg(answer any) error {
	s := a.stream()
	if s == nil {
		return a.unsent()
	}
	err := s.RecvMsg(answer)
	repeat := !a.received && a.client.retryable(&a.call, err)
	a.received = true
	if repeat {
		return a.repeat(answer, err)
	}
	return a.client.translateReceived(a.call.key, err)
}

// repeat retries the call. The error of the first attempt counts as an attempt and causes a
// backoff.
func (a *responseStream) repeat(answer any, first error) error {
	var end error
	err := a.client.do(a.ctx, &a.call, func(ctx context.Context, addr string) error {
		if err := first; err != nil {
			first = nil
			return err
		}
		if err := a.begin(ctx, addr); err != nil {
			return err
		}
		err := a.stream().RecvMsg(answer)
		if errors.Is(err, io.EOF) {
			end, err = err, nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return end
}

func (a *responseStream) unsent() error {
	return status.Errorf(codes.Internal, "the request of %s has not been sent", a.name)
}

// CloseSend does nothing: SendMsg has closed the sending side.
func (a *responseStream) CloseSend() error { return nil }

// Context returns the context of the stream; before SendMsg, that of the call.
func (a *responseStream) Context() context.Context {
	if s := a.stream(); s != nil {
		return s.Context()
	}
	return a.ctx
}

// Header waits for the header of the current attempt. If the server rejects the call, RecvMsg
// opens another stream with its own header.
func (a *responseStream) Header() (metadata.MD, error) {
	s := a.stream()
	if s == nil {
		return nil, a.unsent()
	}
	md, err := s.Header()
	return md, translate(a.client.namespace, a.call.key, err)
}

// Trailer returns the trailer of the last attempt.
func (a *responseStream) Trailer() metadata.MD {
	if s := a.stream(); s != nil {
		return s.Trailer()
	}
	return nil
}
