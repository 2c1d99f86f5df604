package leasegrpc

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// ServerConfig says what a server takes for the key of a call.
type ServerConfig struct {
	// Methods says more about some methods: see [Config.Methods]. A KeyField decides
	// what a call is about, and a caller that has routed it by another key is told so,
	// with InvalidArgument. Without one the caller's word is all there is: compare
	// the key of [Lease] with what the request asks for, or give the method a
	// KeyField.
	Methods map[string]Method
}

// ServerOptions makes a server refuse calls about keys that its owner does not own,
// in a way that callers of this package understand, and hand the lease to the
// handlers of all others.
//
//	options, err := leasegrpc.ServerOptions(o, leasegrpc.ServerConfig{})
//	...
//	server := grpc.NewServer(options...)
//
// Calls without a key are refused with InvalidArgument, unless their method is
// [Method.Unkeyed].
func ServerOptions(o *owner.Owner, cfg ServerConfig) ([]grpc.ServerOption, error) {
	m, err := newMethods("serve", cfg.Methods)
	if err != nil {
		return nil, err
	}
	s := &server{owner: o, namespace: o.Namespace(), methods: m}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(s.unary), grpc.ChainStreamInterceptor(s.stream)}, nil
}

// Lease returns the lease under which a handler was called, and whether there is
// one: not in methods that are [Method.Unkeyed].
//
// It was held when the handler was called. A handler that waits for a lock after
// that, or for anything else, may go on in another tenure: it compares the lease's
// generation with the one beside its state, as package leasehold says, or checks
// anew under its lock, as package leasemap does.
func Lease(ctx context.Context) (owner.Lease, bool) {
	l, ok := ctx.Value(leaseKey{}).(owner.Lease)
	return l, ok
}

type leaseKey struct{}

// server is what the interceptors of a server share. It is immutable.
type server struct {
	owner     *owner.Owner
	namespace leasehold.Namespace
	methods   *methods
}

func (s *server) unary(ctx context.Context, request any, call *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	m := s.methods.find(call.FullMethod)
	if m.Unkeyed {
		return handle(ctx, request)
	}
	key, err := s.key(ctx, m, request)
	if err != nil {
		return nil, s.mark(key, err)
	}
	lease, err := s.check(ctx, key)
	if err != nil {
		return nil, s.refuse(call.FullMethod, m, key, err)
	}
	answer, err := handle(context.WithValue(ctx, leaseKey{}, lease), request)
	if err := s.seal(lease, err); err != nil {
		return nil, err
	}
	return answer, nil
}

const opServe = "serve"

func (s *server) key(ctx context.Context, m *method, request any) (leasehold.Key, error) {
	said, routed, err := header(ctx)
	if err != nil || m.path == nil && routed {
		return said, err
	}
	if m.path == nil {
		return 0, leasehold.Errorf(opServe, leasehold.ErrInvalid, string(s.namespace),
			"the call has no key: want one in the header %s, or a KeyField for the method", keyHeader)
	}
	key, err := m.path.key(request)
	switch {
	case err != nil:
		return 0, leasehold.Errorf(opServe, leasehold.ErrInvalid, string(s.namespace), "the call has no key: %w", err)
	case routed && key != said:
		return key, m.path.differs(said, key)
	}
	return key, nil
}

// differs says that the key of a call's field is not the one that it was routed by.
func (p *fieldPath) differs(routed, key leasehold.Key) error {
	return leasehold.Errorf(opServe, leasehold.ErrInvalid, key.String(), "the call was routed by key %v, but this is the key of its field %q", routed, p.text)
}

// header is the key that the caller has routed the call by, if any.
func header(ctx context.Context) (key leasehold.Key, there bool, err error) {
	switch values := metadata.ValueFromIncomingContext(ctx, keyHeader); len(values) {
	case 0:
		return 0, false, nil
	case 1:
		key, err = leasehold.ParseKey(values[0])
		return key, err == nil, err
	default:
		return 0, false, leasehold.Errorf(opServe, leasehold.ErrInvalid, keyHeader, "the call has %d of these headers", len(values))
	}
}

// check returns the lease on a key, and waits for one that is about to come.
func (s *server) check(ctx context.Context, key leasehold.Key) (owner.Lease, error) {
	_ = s.owner.Await(ctx, key) // Check says the same, and has the lease
	lease, ok := s.owner.Check(key)
	if !ok && s.owner.Suspended(key) {
		return lease, leasehold.Errorf(opServe, leasehold.ErrSuspended, key.String(),
			"the lease of server %s of namespace %s is suspended, because no manager has answered in time; nothing was done", s.owner.Name(), s.namespace)
	}
	if !ok {
		return lease, leasehold.Errorf(opServe, leasehold.ErrNotOwner, key.String(), "server %s of namespace %s does not own the key; nothing was done", s.owner.Name(), s.namespace)
	}
	return lease, nil
}

func (s *server) mark(key leasehold.Key, err error) error {
	return marked(s.namespace, key, origin{}, err)
}

// refuse makes a status of the refusal of a unary call. If the key is from a field of
// the request, it says which: callers may have routed by another.
func (s *server) refuse(name string, m *method, key leasehold.Key, err error) error {
	if m.path == nil {
		return s.mark(key, err)
	}
	return marked(s.namespace, key, origin{name, m.path.text}, err)
}

// seal decides what leaves the server when a handler has returned. What it says is
// worth nothing if the lease has ended meanwhile, except that it has done nothing.
func (s *server) seal(lease owner.Lease, err error) error {
	kind := leasehold.Other
	if _, isStatus := status.FromError(err); err != nil && !isStatus { // others' errors, passed on, are
		kind = leasehold.KindOf(err)
	}
	switch {
	case kind == leasehold.ErrNotOwner || kind == leasehold.ErrSuspended:
		return s.mark(lease.Key, refusedAnother(lease.Key, err))
	case !s.owner.Held(lease):
		return s.mark(lease.Key, s.ended(lease))
	case kind != leasehold.Other:
		return s.mark(lease.Key, err)
	default:
		return err
	}
}

// refusedAnother returns what a handler has refused, or that it was another key than
// the one of the call: then no server that the caller finds would do better.
func refusedAnother(routed leasehold.Key, err error) error {
	var about interface {
		RefusedKey() (name string, key leasehold.Key) // as errors of package leasemap have
	}
	if !errors.As(err, &about) {
		return err
	}
	name, key := about.RefusedKey()
	if key == routed {
		return err
	}
	return leasehold.Errorf(opServe, leasehold.ErrInvalid, name,
		"caller and server take the key of the call from different places: it was routed by key %v, and the handler asked for key %v, which this server does not own", routed, key)
}

func (s *server) ended(lease owner.Lease) error {
	return leasehold.Errorf(opServe, leasehold.ErrIndeterminate, lease.Key.String(),
		"the lease of generation %d ended, or was suspended, while server %s worked: the call may have been carried out, or not", lease.Generation, s.owner.Name())
}

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
	var lease owner.Lease
	if err == nil {
		lease, err = s.check(stream.Context(), key)
	}
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
		err = l.path.differs(l.lease.Key, key)
	}
	if err != nil {
		return l.server.mark(l.lease.Key, leasehold.Errorf(opServe, leasehold.ErrInvalid, string(l.server.namespace), "%w", err))
	}
	l.path = nil // there is one request
	return nil
}
