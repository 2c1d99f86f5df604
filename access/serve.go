package access

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// ServerOptions are what a gRPC server needs in order to go by the policy. They
// include the tap of the server, of which there is one.
func (p *Policy) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.InTapHandle(p.tap),
		grpc.UnknownServiceHandler(unknown),
		grpc.ChainUnaryInterceptor(p.unary),
		grpc.ChainStreamInterceptor(p.stream),
	}
}

// Admit reports why the call of ctx is refused, whatever it asks for; nil if that depends on
// what it does. A server's methods of one request and one answer ask it before they read
// the request: an interceptor comes too late for that.
func (p *Policy) Admit(ctx context.Context) error {
	if s := sessionFrom(ctx); s != nil && s.policy == p {
		return s.refused
	}
	return nil // the interceptor refuses who has not come through the tap
}

// unknown answers who asks for a method that there is not. gRPC would do so by itself, and
// whoever asks.
func unknown(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.Method(stream.Context())
	return status.Errorf(codes.Unimplemented, "there is no method %s", clip(method))
}

// handled returns the session of a call that may be handled. With an error and a session,
// the caller may call, and the method is for nobody.
func (p *Policy) handled(ctx context.Context, fullMethod string) (*session, error) {
	s := sessionFrom(ctx)
	switch {
	case s == nil || s.policy != p:
		return nil, toStatus(leasehold.Errorf(opCall, leasehold.ErrInternal, short(fullMethod), "it has not come through the policy's tap"))
	case s.refused != nil:
		return nil, s.refused
	case s.method.need == forNobody:
		return s, p.refuse(s, denied(&s.caller, fullMethod, whyRole(s.by(p.book.Load()), s.method)))
	}
	return s, nil
}

func (p *Policy) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	s, err := p.handled(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	if err = s.authorize(request); err == nil {
		err = p.budgets.weigh(s, request)
	}
	if err != nil {
		return nil, p.refuse(s, err)
	}
	answer, err := handle(ctx, request)
	p.audit.ordered(s, request, err)
	return answer, err
}

func (p *Policy) stream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	s, err := p.handled(stream.Context(), info.FullMethod)
	switch {
	case err != nil && s != nil && service == nil:
		return unknown(nil, stream) // the caller has a role, and may hear that there is no such method
	case err != nil:
		return err
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	s.cancel = cancel
	if err := p.enter(s); err != nil {
		return p.refuse(s, err)
	}
	defer p.leave(s)
	return s.verdict(handle(service, &serverStream{stream, ctx, s}))
}

// A serverStream is a stream whose every message is decided about.
type serverStream struct {
	grpc.ServerStream
	ctx     context.Context //nolint:containedctx // it is the stream's
	session *session
}

// Context ends when the caller may no longer.
func (s *serverStream) Context() context.Context { return s.ctx }

// RecvMsg receives a message that the caller may send.
func (s *serverStream) RecvMsg(message any) error {
	if err := s.ServerStream.RecvMsg(message); err != nil {
		return s.session.verdict(err)
	}
	if err := s.session.hear(s.ctx, message); err != nil {
		return s.session.end(err)
	}
	return nil
}

// SendMsg sends a message, if the caller may still hear it.
func (s *serverStream) SendMsg(message any) error {
	if err := s.session.still(); err != nil {
		return s.session.end(err)
	}
	if err := s.ServerStream.SendMsg(message); err != nil {
		return s.session.verdict(err)
	}
	return nil
}

// hear decides about a message, and lets it be known who was let in.
func (s *session) hear(ctx context.Context, message any) error {
	if s.method.need == forAnybody {
		return nil
	}
	if err := s.policy.budgets.message(ctx, s, message); err != nil {
		return err
	}
	before := s.decision.Load()
	if err := s.authorize(message); err != nil {
		return err
	}
	if after := s.decision.Load(); after != before && s.method.need == toHold {
		if request, ok := message.(*leaseholdv1.HoldRequest); ok {
			s.policy.audit.let(s, after.subject, request.GetHolder())
		}
	}
	return nil
}

// Serve carries out a call within this process, on behalf of the caller that
// [WithCaller] has set; without one it refuses. What the caller may not do is
// refused as it is to those who call from elsewhere, and the context that handle
// gets ends when the caller may no longer. The error is a gRPC status.
func (p *Policy) Serve(ctx context.Context, fullMethod string, request any, handle func(context.Context) error) error {
	c, _ := ctx.Value(callerKey{}).(Caller)
	s := &session{policy: p, fullMethod: fullMethod, method: methodOf(fullMethod), caller: c}
	if s.method.need == forNobody {
		return p.refuse(s, denied(&s.caller, fullMethod, whyRole(nil, s.method)))
	}
	ctx, s.cancel = context.WithCancelCause(ctx)
	defer s.cancel(nil)
	err := s.authorize(request)
	if err == nil {
		_, err = p.budgets.call(s)
	}
	if err == nil {
		err = p.enter(s)
	}
	if err != nil {
		return p.refuse(s, err)
	}
	defer p.leave(s)
	err = s.verdict(handle(context.WithValue(ctx, sessionKey{}, s)))
	p.audit.ordered(s, request, err)
	return err
}
