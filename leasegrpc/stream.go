package leasegrpc

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
)

func (c *client) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	call := c.describe(name, options)
	begin := func(ctx context.Context) (grpc.ClientStream, error) {
		return open(ctx, desc, cc, name, options...)
	}
	if !desc.ClientStreams {
		return &answers{client: c, call: call, name: name, ctx: ctx, open: begin}, nil
	}
	if err := call.find(name, nil); err != nil {
		return nil, err
	}
	var s grpc.ClientStream
	err := c.do(announce(ctx, call.key), &call, func(ctx context.Context) (err error) {
		s, err = begin(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &dialogue{ClientStream: s, client: c, key: call.key}, nil
}

// A dialogue is a call with a stream of requests. It is not repeated once it is
// open, since what was sent is not kept: the application hears of a refusal with
// its first answer, as [leasehold.ErrNotOwner], and opens another.
type dialogue struct {
	grpc.ClientStream
	client *client
	key    leasehold.Key
}

func (d *dialogue) RecvMsg(m any) error { return d.client.heard(d.key, d.ClientStream.RecvMsg(m)) }

func (d *dialogue) Header() (metadata.MD, error) {
	md, err := d.ClientStream.Header()
	return md, d.client.heard(d.key, err)
}

func (c *client) heard(key leasehold.Key, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	if refused(c.namespace, key, err) {
		c.lookup.Refresh()
	}
	return translate(c.namespace, key, err)
}

// answers is a call with one request and a stream of answers. It is opened with the
// request, which may have the key, and again with the same one until the first answer
// has come.
type answers struct {
	client *client
	call   call
	name   string
	ctx    context.Context // the call's
	open   func(context.Context) (grpc.ClientStream, error)

	mu       sync.Mutex // RecvMsg may replace what other methods read
	current  grpc.ClientStream
	request  any
	answered bool // only RecvMsg uses it
}

// SendMsg makes the call. Generated code sends one message, and ends the sending,
// before anybody can receive: the two are not called at once.
func (a *answers) SendMsg(request any) error {
	if a.stream() != nil {
		return status.Errorf(codes.Internal, "%s takes one request", a.name)
	}
	if err := a.call.find(a.name, request); err != nil {
		return err
	}
	a.request, a.ctx = request, announce(a.ctx, a.call.key)
	return a.client.do(a.ctx, &a.call, a.begin)
}

func (a *answers) begin(ctx context.Context) error {
	s, err := a.open(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.current = s
	a.mu.Unlock()
	if err := s.SendMsg(a.request); err != nil {
		if errors.Is(err, io.EOF) {
			return nil // it has ended already, and RecvMsg says why
		}
		return err
	}
	return s.CloseSend()
}

// stream is the one that was begun last, nil if there is none.
func (a *answers) stream() grpc.ClientStream {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current
}

// RecvMsg waits for the next answer. As long as there was none, the call is
// repeated when a unary one would be. What the open stream has comes first, whoever
// owns the key by now: an answer may be there already.
func (a *answers) RecvMsg(answer any) error {
	s := a.stream()
	if s == nil {
		return a.unsent()
	}
	err := s.RecvMsg(answer)
	repeat := !a.answered && a.client.again(&a.call, err)
	a.answered = true
	if repeat {
		return a.repeat(answer, err)
	}
	return a.client.heard(a.call.key, err)
}

// repeat makes the call again, whose first attempt has ended with an error. That
// counts as one of the attempts, and is followed by a backoff.
func (a *answers) repeat(answer any, first error) error {
	var end error
	err := a.client.do(a.ctx, &a.call, func(ctx context.Context) error {
		if err := first; err != nil {
			first = nil
			return err
		}
		if err := a.begin(ctx); err != nil {
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

func (a *answers) unsent() error {
	return status.Errorf(codes.Internal, "%s has not been sent its request", a.name)
}

// CloseSend does nothing: what is to be sent is sent by SendMsg.
func (a *answers) CloseSend() error { return nil }

// Context is that of the stream, or the call's as long as there is none.
func (a *answers) Context() context.Context {
	if s := a.stream(); s != nil {
		return s.Context()
	}
	return a.ctx
}

// Header waits for that of the stream as it is open now: if its server refuses the
// call, RecvMsg opens another one, with a header of its own.
func (a *answers) Header() (metadata.MD, error) {
	s := a.stream()
	if s == nil {
		return nil, a.unsent()
	}
	md, err := s.Header()
	return md, translate(a.client.namespace, a.call.key, err)
}

// Trailer is that of the stream that has ended.
func (a *answers) Trailer() metadata.MD {
	if s := a.stream(); s != nil {
		return s.Trailer()
	}
	return nil
}
