package leasegrpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// ServerConfig configures a server.
type ServerConfig struct {
	// Methods configures methods: see [Config.Methods]. With a KeyField the server derives
	// the key from the request, and a call that was routed by another key fails with
	// InvalidArgument. Without one the server uses the key of the header, which the caller
	// sets: the handler must then compare the key of [Lease] with the request.
	Methods map[string]Method

	// Owners are the owners of further namespaces that this server serves, by the methods
	// that belong to them: full names "/package.Service/Method", or "/package.Service/" for
	// the other methods of a service. All remaining methods belong to the namespace of the
	// owner that [ServerOptions] is called with. Callers have a connection for each
	// namespace. The generated code of the services must be linked into the program, so that
	// ServerOptions can reject wrong names.
	//
	// Use this instead of ServerOptions for each owner: every interceptor would check every
	// call, which would need the leases on its key in all namespaces. Such calls fail with
	// InvalidArgument.
	Owners map[string]*owner.Owner
}

// keepaliveMinTime is the minimum interval of a client's keepalive pings. Clients of grpc-go and
// grpc-java ping at most every 10 s.
const keepaliveMinTime = 5 * time.Second

// ServerOptions returns options with which a server rejects calls for keys that its owner does
// not own, so that callers of this package retry them elsewhere. The handlers of other calls
// get the lease in the context.
//
//	options, err := leasegrpc.ServerOptions(o, leasegrpc.ServerConfig{})
//	...
//	server := grpc.NewServer(options...)
//
// Calls without a key fail with InvalidArgument, unless their method is [Method.Unkeyed].
//
// The options permit keepalive pings of clients every 5 s, also without streams: gRPC's default of
// 5 minutes ends the connection of a client with a shorter interval. A
// grpc.KeepaliveEnforcementPolicy after these options replaces it.
func ServerOptions(o *owner.Owner, cfg ServerConfig) ([]grpc.ServerOption, error) {
	m, err := newMethods(opServe, cfg.Methods)
	if err != nil {
		return nil, err
	}
	servers := newByMethod(newServer(o, m))
	for name, other := range cfg.Owners {
		if other == nil {
			return nil, leasehold.Errorf(opServe, leasehold.ErrInvalid, name, "the owner is nil: want that of the method's namespace")
		}
		if err := addOwner(servers, name, newServer(other, m)); err != nil {
			return nil, err
		}
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, call *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			return servers.find(call.FullMethod).unary(ctx, request, call, handle)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, call *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			return servers.find(call.FullMethod).stream(srv, stream, call, handle)
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMinTime, PermitWithoutStream: true}),
	}, nil
}

// addOwner adds an entry of [ServerConfig.Owners]. A wrong name would check calls with the owner of another namespace.
func addOwner(servers *byMethod[*server], name string, s *server) error {
	if err := servers.set(opServe, name, s); err != nil {
		return err
	}
	service, short, _ := split(opServe, name) // it is valid
	_, err := linked(opServe, service, short, "an entry of Owners")
	return err
}

// Lease returns the lease under which a handler was called. It returns false in methods that
// are [Method.Unkeyed].
//
// The lease was held when the handler was called. It may end while the handler waits, for
// example for a lock. The handler must compare the lease's generation with that of its state,
// as package leasehold describes, or check again under its lock, as package leasemap does.
func Lease(ctx context.Context) (owner.Lease, bool) {
	c, ok := ctx.Value(checkedKey{}).(checked)
	return c.lease, ok
}

// A checked is the result of a call's check, in its context.
type checked struct {
	lease owner.Lease
	by    *owner.Owner
}

type checkedKey struct{}

// server is the shared state of the interceptors for the calls of a namespace. It is immutable.
type server struct {
	owner     *owner.Owner
	namespace leasehold.Namespace
	methods   *methods
}

func newServer(o *owner.Owner, m *methods) *server {
	return &server{owner: o, namespace: o.Namespace(), methods: m}
}

// withLease returns the context of a call that was checked.
func (s *server) withLease(ctx context.Context, lease owner.Lease) context.Context {
	return context.WithValue(ctx, checkedKey{}, checked{lease, s.owner})
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
		return nil, s.rejectUnary(call.FullMethod, m, key, err)
	}
	answer, err := handle(s.withLease(ctx, lease), request)
	if err := s.checkResult(lease, err); err != nil {
		return nil, err
	}
	return answer, nil
}

const opServe = "serve"

func (s *server) key(ctx context.Context, m *method, request any) (leasehold.Key, error) {
	keyInHeader, routed, err := header(ctx)
	if err != nil || m.path == nil && routed {
		return keyInHeader, err
	}
	if m.path == nil {
		return 0, leasehold.Errorf(opServe, leasehold.ErrInvalid, string(s.namespace),
			"the call has no key: want one in the header %s, or a KeyField for the method", keyHeader)
	}
	key, err := m.path.key(request)
	switch {
	case err != nil:
		return 0, leasehold.Errorf(opServe, leasehold.ErrInvalid, string(s.namespace), "the call has no key: %w", err)
	case routed && key != keyInHeader:
		return key, m.path.mismatch(keyInHeader, key)
	}
	return key, nil
}

// mismatch is the error of a call that was routed by another key than that of its field.
func (p *fieldPath) mismatch(routed, key leasehold.Key) error {
	return leasehold.Errorf(opServe, leasehold.ErrInvalid, key.String(), "the call was routed by key %v, which differs from the key of its field %q", routed, p.text)
}

// header returns the key in the call's header, if there is one.
func header(ctx context.Context) (key leasehold.Key, there bool, err error) {
	switch values := metadata.ValueFromIncomingContext(ctx, keyHeader); len(values) {
	case 0:
		return 0, false, nil
	case 1:
		key, err = keyOfHeader(values[0], metadata.ValueFromIncomingContext(ctx, kindHeader))
		return key, err == nil, err
	default:
		return 0, false, leasehold.Errorf(opServe, leasehold.ErrInvalid, keyHeader, "the header occurs %d times", len(values))
	}
}

// keyOfHeader returns the key in the value of a header of this kind.
func keyOfHeader(value string, kind []string) (leasehold.Key, error) {
	switch {
	case len(kind) == 0:
		return leasehold.ParseKey(value)
	case len(kind) == 1 && kind[0] == kindName && value != "":
		return leasehold.KeyOf(value), nil
	}
	return 0, leasehold.Errorf(opServe, leasehold.ErrInvalid, kindHeader, "the header is %q for the key %q: want %q and a name, or no header and 16 hexadecimal digits", kind, value, kindName)
}

// check returns the lease on a key. It waits for a move to this server that is in progress.
func (s *server) check(ctx context.Context, key leasehold.Key) (owner.Lease, error) {
	if before, ok := ctx.Value(checkedKey{}).(checked); ok && before.by != s.owner {
		return owner.Lease{}, leasehold.Errorf(opServe, leasehold.ErrInvalid, key.String(),
			"the server has the ServerOptions of namespaces %s and %s, which both check the call: use one, with the other owner in ServerConfig.Owners",
			before.by.Namespace(), s.namespace)
	}
	_ = s.owner.Await(ctx, key) // Check has the result
	lease, ok := s.owner.Check(key)
	if !ok && s.owner.Suspended(key) {
		return lease, leasehold.Errorf(opServe, leasehold.ErrSuspended, key.String(),
			"the lease of server %s of namespace %s is suspended because no manager responded in time; the call was not executed", s.owner.Name(), s.namespace)
	}
	if !ok {
		return lease, leasehold.Errorf(opServe, leasehold.ErrNotOwner, key.String(), "server %s of namespace %s does not own the key; the call was not executed", s.owner.Name(), s.namespace)
	}
	return lease, nil
}

func (s *server) mark(key leasehold.Key, err error) error {
	return newStatus(s.namespace, key, origin{}, err)
}

// rejectUnary returns the status of a rejected unary call. It contains the KeyField, because
// the caller may have routed by another field.
func (s *server) rejectUnary(name string, m *method, key leasehold.Key, err error) error {
	if m.path == nil {
		return s.mark(key, err)
	}
	return newStatus(s.namespace, key, origin{name, m.path.text}, err)
}

// checkResult returns the error of a call whose handler has returned. If the lease has ended,
// the handler's result is replaced, unless it is a rejection.
func (s *server) checkResult(lease owner.Lease, err error) error {
	kind := leasehold.Other
	if _, isStatus := status.FromError(err); err != nil && !isStatus { // a status may be another service's
		kind = leasehold.KindOf(err)
	}
	switch {
	case kind == leasehold.ErrNotOwner || kind == leasehold.ErrSuspended:
		return s.mark(lease.Key, wrongKey(lease.Key, err))
	case !s.owner.Held(lease):
		return s.mark(lease.Key, s.leaseEnded(lease))
	case kind != leasehold.Other:
		return s.mark(lease.Key, err)
	default:
		return err
	}
}

// wrongKey returns the handler's rejection, or ErrInvalid if the handler used another key than
// that of the call: every server to which the caller can route it would reject it.
func wrongKey(routed leasehold.Key, err error) error {
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
		"caller and server use different keys: the call was routed by key %v, but the handler used key %v, which this server does not own", routed, key)
}

func (s *server) leaseEnded(lease owner.Lease) error {
	return leasehold.Errorf(opServe, leasehold.ErrIndeterminate, lease.Key.String(),
		"the lease of generation %d ended or was suspended during the call to server %s: it may have been executed", lease.Generation, s.owner.Name())
}

// stream is the interceptor of calls with a stream of requests or responses. Their key is in
// the header; a KeyField of the method is compared with it when the request arrives.
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
	return s.checkResult(lease, s.handleStream(lease, srv, stream, m, handle))
}

// handleStream calls a handler with a context that ends when the lease ends.
func (s *server) handleStream(lease owner.Lease, srv any, stream grpc.ServerStream, m *method, handle grpc.StreamHandler) error {
	ctx, cancel := context.WithCancelCause(s.withLease(stream.Context(), lease))
	var watching sync.WaitGroup
	watching.Go(func() {
		if s.owner.AwaitEnd(ctx, lease) == nil {
			cancel(s.leaseEnded(lease))
		}
	})
	defer watching.Wait()
	defer cancel(nil)
	return handle(srv, &leasedStream{ServerStream: stream, server: s, lease: lease, ctx: ctx, path: m.path})
}

// A leasedStream sends messages and early headers only with its lease. Metadata of SetHeader
// and SetTrailer is sent with the status in any case: gRPC cannot remove it.
type leasedStream struct {
	grpc.ServerStream
	server *server
	lease  owner.Lease
	ctx    context.Context // ends with the lease
	path   *fieldPath      // nil without a KeyField, and after the request has arrived
}

func (l *leasedStream) Context() context.Context { return l.ctx }

// SendMsg sends a message if the lease has been held.
func (l *leasedStream) SendMsg(m any) error {
	if err := l.held(); err != nil {
		return err
	}
	return l.ServerStream.SendMsg(m)
}

// SendHeader sends the header if the lease has been held.
func (l *leasedStream) SendHeader(md metadata.MD) error {
	if err := l.held(); err != nil {
		return err
	}
	return l.ServerStream.SendHeader(md)
}

// held returns the status of a stream whose lease has ended; nil if it is held.
func (l *leasedStream) held() error {
	if l.server.owner.Held(l.lease) {
		return nil
	}
	return l.server.mark(l.lease.Key, l.server.leaseEnded(l.lease))
}

// RecvMsg receives a message, and compares the key of the first one.
func (l *leasedStream) RecvMsg(m any) error {
	if err := l.ServerStream.RecvMsg(m); err != nil || l.path == nil {
		return err
	}
	key, err := l.path.key(m)
	if err == nil && key != l.lease.Key {
		err = l.path.mismatch(l.lease.Key, key)
	}
	if err != nil {
		return l.server.mark(l.lease.Key, leasehold.Errorf(opServe, leasehold.ErrInvalid, string(l.server.namespace), "%w", err))
	}
	l.path = nil // only the first message has the key
	return nil
}
