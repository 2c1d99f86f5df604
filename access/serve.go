package access

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// ServerOptions returns the options of a gRPC server that uses the policy. They include
// its tap, and a server can have only one.
func (p *Policy) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.InTapHandle(p.tap),
		grpc.UnknownServiceHandler(unknown),
		grpc.ChainUnaryInterceptor(p.unary),
		grpc.ChainStreamInterceptor(p.stream),
	}
}

// Admit returns the error of a call that the tap has denied, and nil for other calls. The
// unary methods of a server call it before they decode the request, because an interceptor
// runs only after that.
func (p *Policy) Admit(ctx context.Context) error {
	if s := sessionFrom(ctx); s != nil && s.policy == p {
		return s.denied
	}
	return nil // the interceptor denies calls that did not pass the tap
}

// unknown returns Unimplemented to callers that have a role. gRPC's own handler would
// return it to every caller.
func unknown(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.Method(stream.Context())
	return status.Errorf(codes.Unimplemented, "unknown method %s", clip(method))
}

// handled returns the session of a call that may be handled. It returns a session and an
// error if the caller has a role, but the method has no rule.
func (p *Policy) handled(ctx context.Context, fullMethod string) (*session, error) {
	s := sessionFrom(ctx)
	switch {
	case s == nil || s.policy != p:
		return nil, toStatus(leasehold.Errorf(opCall, leasehold.ErrInternal, short(fullMethod), "the call did not pass the policy's tap"))
	case s.denied != nil:
		return nil, s.denied
	case s.method.need == unlisted:
		return s, p.deny(s, denied(&s.caller, fullMethod, roleDenied(s.grants(p.ruleset.Load()), s.method)))
	}
	return s, nil
}

func (p *Policy) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	s, err := p.handled(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	if err = s.authorize(request); err == nil {
		err = p.budgets.chargeBytes(s, request)
	}
	if err != nil {
		return nil, p.deny(s, err)
	}
	answer, err := handle(ctx, request)
	p.audit.logOperation(s, request, err)
	return answer, err
}

func (p *Policy) stream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	s, err := p.handled(stream.Context(), info.FullMethod)
	switch {
	case err != nil && s != nil && service == nil:
		return unknown(nil, stream) // the caller has a role
	case err != nil:
		return err
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	s.cancel = cancel
	if err := p.register(s); err != nil {
		return p.deny(s, err)
	}
	defer p.unregister(s)
	return s.outcome(handle(service, &serverStream{stream, ctx, s}))
}

// A serverStream authorizes every message of a stream.
type serverStream struct {
	grpc.ServerStream
	ctx     context.Context //nolint:containedctx // the stream's own
	session *session
}

// Context ends when the call is no longer permitted.
func (s *serverStream) Context() context.Context { return s.ctx }

// RecvMsg receives and authorizes a message.
func (s *serverStream) RecvMsg(message any) error {
	if err := s.ServerStream.RecvMsg(message); err != nil {
		return s.session.outcome(err)
	}
	if err := s.session.receive(s.ctx, message); err != nil {
		return s.session.end(err)
	}
	return nil
}

// SendMsg sends a message if the call is still permitted.
func (s *serverStream) SendMsg(message any) error {
	if err := s.session.recheck(); err != nil {
		return s.session.end(err)
	}
	if err := s.ServerStream.SendMsg(message); err != nil {
		return s.session.outcome(err)
	}
	return nil
}

// receive charges and authorizes a message, and logs the admission of an owner.
func (s *session) receive(ctx context.Context, message any) error {
	if s.method.need == public {
		return nil
	}
	if err := s.policy.budgets.message(ctx, s, message); err != nil {
		return err
	}
	before := s.decision.Load()
	if err := s.authorize(message); err != nil {
		return err
	}
	if after := s.decision.Load(); after != before && s.method.need == holdLeases {
		if request, ok := message.(*leaseholdv1.HoldRequest); ok {
			s.policy.audit.logAdmission(s, after.subject, request.GetHolder())
		}
	}
	return nil
}

// Serve executes a call within this process on behalf of the caller of [WithCaller]; an
// anonymous one is denied. It is authorized like a remote call, and the context of handle
// ends when the call is no longer permitted. The error is a gRPC status.
func (p *Policy) Serve(ctx context.Context, fullMethod string, request any, handle func(context.Context) error) error {
	c, _ := ctx.Value(callerKey{}).(Caller)
	s := &session{policy: p, fullMethod: fullMethod, method: methodOf(fullMethod), caller: c}
	if s.method.need == unlisted {
		return p.deny(s, denied(&s.caller, fullMethod, roleDenied(nil, s.method)))
	}
	ctx, s.cancel = context.WithCancelCause(ctx)
	defer s.cancel(nil)
	err := s.authorize(request)
	if err == nil {
		_, err = p.budgets.call(s)
	}
	if err == nil {
		err = p.register(s)
	}
	if err != nil {
		return p.deny(s, err)
	}
	defer p.unregister(s)
	err = s.outcome(handle(context.WithValue(ctx, sessionKey{}, s)))
	p.audit.logOperation(s, request, err)
	return err
}
