package leasegrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/typepb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// The service of these tests, counters by name, in the form of generated code.
//
//	service Counter {
//		rpc Add(google.protobuf.StringValue) returns (google.protobuf.Int64Value);
//		rpc Watch(google.protobuf.StringValue) returns (stream google.protobuf.Int64Value);
//		rpc Chat(stream google.protobuf.StringValue) returns (stream google.protobuf.Int64Value);
//	}
const (
	service     = "leasegrpc.test.Counter"
	methodAdd   = "/" + service + "/Add"
	methodWatch = "/" + service + "/Watch"
	methodChat  = "/" + service + "/Chat"
)

func TestMain(m *testing.M) {
	if err := register(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	leak.Main(m)
}

// serviceOdd has requests of other types, with empty responses.
const serviceOdd = "leasegrpc.test.Odd"

// oddMethods are its methods with their request types.
var oddMethods = map[string]proto.Message{
	"Number": &wrapperspb.Int64Value{}, "Many": &fieldmaskpb.FieldMask{}, "Bytes": &wrapperspb.BytesValue{}, "Nested": &typepb.Type{},
}

// register registers the services like generated code.
func register() error {
	const text, number, nothing = ".google.protobuf.StringValue", ".google.protobuf.Int64Value", ".google.protobuf.Empty"
	method := func(name, in, out string, requests, answers bool) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: &in, OutputType: &out, ClientStreaming: &requests, ServerStreaming: &answers,
		}
	}
	odd := &descriptorpb.ServiceDescriptorProto{Name: proto.String("Odd")}
	for name, in := range oddMethods {
		odd.Method = append(odd.Method, method(name, "."+string(in.ProtoReflect().Descriptor().FullName()), nothing, false, false))
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("leasegrpc/test/counter.proto"), Package: proto.String("leasegrpc.test"), Syntax: proto.String("proto3"),
		Dependency: []string{
			"google/protobuf/wrappers.proto", "google/protobuf/field_mask.proto", "google/protobuf/type.proto", "google/protobuf/empty.proto",
		},
		Service: []*descriptorpb.ServiceDescriptorProto{odd, {
			Name: proto.String("Counter"),
			Method: []*descriptorpb.MethodDescriptorProto{
				method("Add", text, number, false, false), method("Watch", text, number, false, true), method("Chat", text, number, true, true),
			},
		}},
	}, protoregistry.GlobalFiles)
	if err != nil {
		return err
	}
	return protoregistry.GlobalFiles.RegisterFile(file)
}

// startOdd starts a server of serviceOdd.
func startOdd(n *leaseholdtest.Node, asked func(context.Context), options ...grpc.ServerOption) {
	desc := &grpc.ServiceDesc{ServiceName: serviceOdd, HandlerType: (*any)(nil)}
	for name, in := range oddMethods {
		desc.Methods = append(desc.Methods, grpc.MethodDesc{
			MethodName: name,
			Handler: func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
				request := proto.Clone(in)
				if err := decode(request); err != nil {
					return nil, err
				}
				return intercept(ctx, request, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + serviceOdd + "/" + name},
					func(ctx context.Context, _ any) (any, error) {
						asked(ctx)
						return new(emptypb.Empty), nil
					})
			},
		})
	}
	run(n, desc, new(any), options...)
}

// A handler is the server's interface.
type handler interface {
	Add(ctx context.Context, name string) (int64, error)
	Watch(name string, stream grpc.ServerStream) error
	Chat(stream grpc.ServerStream) error
}

func counterDesc() *grpc.ServiceDesc {
	stream := func(handle func(handler, grpc.ServerStream) error) grpc.StreamHandler {
		return func(srv any, s grpc.ServerStream) error { return handle(srv.(handler), s) }
	}
	return &grpc.ServiceDesc{
		ServiceName: service,
		HandlerType: (*handler)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Add", Handler: handleAdd}},
		Streams: []grpc.StreamDesc{
			{StreamName: "Watch", ServerStreams: true, Handler: stream(func(h handler, s grpc.ServerStream) error {
				var name wrapperspb.StringValue
				if err := s.RecvMsg(&name); err != nil {
					return err
				}
				return h.Watch(name.GetValue(), s)
			})},
			{StreamName: "Chat", ServerStreams: true, ClientStreams: true, Handler: stream(handler.Chat)},
		},
	}
}

func handleAdd(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // the order of gRPC
	var name wrapperspb.StringValue
	if err := decode(&name); err != nil {
		return nil, err
	}
	handle := func(ctx context.Context, request any) (any, error) {
		n, err := srv.(handler).Add(ctx, request.(*wrapperspb.StringValue).GetValue())
		return wrapperspb.Int64(n), err
	}
	if intercept == nil {
		return handle(ctx, &name)
	}
	return intercept(ctx, &name, &grpc.UnaryServerInfo{Server: srv, FullMethod: methodAdd}, handle)
}

// A counterClient is the client.
type counterClient struct{ grpc.ClientConnInterface }

func (c counterClient) add(ctx context.Context, name string, options ...grpc.CallOption) (int64, error) {
	var n wrapperspb.Int64Value
	err := c.Invoke(ctx, methodAdd, wrapperspb.String(name), &n, options...)
	return n.GetValue(), err
}

func (c counterClient) watch(ctx context.Context, name string, options ...grpc.CallOption) (*numbers, error) {
	s, err := c.NewStream(ctx, &grpc.StreamDesc{StreamName: "Watch", ServerStreams: true}, methodWatch, options...)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.SendMsg(wrapperspb.String(name)), s.CloseSend()); err != nil {
		return nil, err
	}
	return &numbers{s}, nil
}

func (c counterClient) chat(ctx context.Context, options ...grpc.CallOption) (*numbers, error) {
	s, err := c.NewStream(ctx, &grpc.StreamDesc{StreamName: "Chat", ServerStreams: true, ClientStreams: true}, methodChat, options...)
	return &numbers{s}, err
}

// numbers is a stream of responses.
type numbers struct{ grpc.ClientStream }

func (n *numbers) next() (int64, error) {
	var v wrapperspb.Int64Value
	err := n.RecvMsg(&v)
	return v.GetValue(), err
}

// counters is a server: Add increments a counter, Watch streams its changes, Chat increments
// the counter of each name.
type counters struct {
	m     *leasemap.Map[int64]
	owner *owner.Owner
	calls atomic.Int64
	work  func() // called by each handler

	mu      sync.Mutex
	changed chan struct{} // closed when a counter changes
}

func newCounters(m *leasemap.Map[int64], o *owner.Owner, work func()) *counters {
	return &counters{m: m, owner: o, work: work, changed: make(chan struct{})}
}

func (c *counters) Add(ctx context.Context, name string) (n int64, err error) {
	c.calls.Add(1)
	if lease, ok := leasegrpc.Lease(ctx); !ok || lease.Key != leasehold.KeyOf(name) || lease.Generation == 0 {
		return 0, fmt.Errorf("the handler of %s has lease %v", name, lease)
	}
	_, err = c.m.Update(ctx, name, func(v *int64) error {
		*v++
		n = *v
		return nil
	})
	c.work()
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
	return n, err
}

func (c *counters) change() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *counters) Watch(name string, stream grpc.ServerStream) error {
	for last := int64(-1); ; {
		changed := c.change()
		n, _, err := c.m.Get(name)
		if err != nil {
			return err
		}
		if n != last {
			if err := stream.SendMsg(wrapperspb.Int64(n)); err != nil {
				return err
			}
			last = n
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

func (c *counters) Chat(stream grpc.ServerStream) error {
	for {
		var name wrapperspb.StringValue
		if err := stream.RecvMsg(&name); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		n, err := c.Add(stream.Context(), name.GetValue())
		if err != nil {
			return err
		}
		if err := stream.SendMsg(wrapperspb.Int64(n)); err != nil {
			return err
		}
	}
}
