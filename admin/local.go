package admin

import (
	"context"
	"io"
	"path"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// NewLocal returns a client of a manager in this process. Its requests are function calls with the
// context of the caller, so the manager sees the identity in it (access.WithCaller). Errors are
// those of the manager, never an UnreachableError. Responses share memory with the manager: do not modify
// them.
func NewLocal(service leaseholdv1.AdminServiceServer) *Client {
	return &Client{timeout: localTimeout, managers: &endpoints{all: []*endpoint{{conn: localConn{service}}}}}
}

// localTimeout is long, because a standby forwards requests, and a table may be large.
const localTimeout = time.Minute

// A localConn calls a service in this process.
type localConn struct {
	service leaseholdv1.AdminServiceServer
}

func (c localConn) Close() error { return nil }

func (c localConn) Invoke(ctx context.Context, method string, request, answer any, _ ...grpc.CallOption) error {
	for _, m := range leaseholdv1.AdminService_ServiceDesc.Methods {
		if m.MethodName != path.Base(method) {
			continue
		}
		got, err := m.Handler(c.service, ctx, func(into any) error { return share(into, request) }, nil)
		if err != nil {
			return err
		}
		return share(answer, got)
	}
	return status.Errorf(codes.Unimplemented, "unknown method %s", method)
}

func share(into, from any) error {
	to := into.(proto.Message).ProtoReflect()
	from.(proto.Message).ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		to.Set(field, value)
		return true
	})
	return nil
}

func (c localConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	p := &pipe{ctx: ctx, answers: make(chan any), ended: make(chan error, 1)}
	return &receiver{pipe: p, serve: func() { p.ended <- desc.Handler(c.service, &sender{pipe: p}) }}, nil
}

// A pipe connects the two ends of a stream of responses to one request.
type pipe struct {
	ctx     context.Context //nolint:containedctx // the stream's own
	request any
	answers chan any
	ended   chan error // the result of the handler
}

// A receiver is the client's end.
type receiver struct {
	grpc.ClientStream // nil: generated code calls no other method
	*pipe
	serve func()
}

func (r *receiver) Context() context.Context { return r.ctx }

func (r *receiver) SendMsg(request any) error {
	r.request = request
	return nil
}

// CloseSend starts the handler. It ends with the context at the latest.
func (r *receiver) CloseSend() error {
	go r.serve()
	return nil
}

func (r *receiver) RecvMsg(into any) error {
	select {
	case answer := <-r.answers:
		return share(into, answer)
	case err := <-r.ended:
		if err == nil {
			err = io.EOF
		}
		return err
	}
}

// A sender is the service's end.
type sender struct {
	grpc.ServerStream // nil: the services call no other method
	*pipe
}

func (s *sender) Context() context.Context { return s.ctx }

func (s *sender) RecvMsg(into any) error { return share(into, s.request) }

func (s *sender) SendMsg(answer any) error {
	select {
	case s.answers <- answer:
		return nil
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}
