package keybalancer

import (
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
)

// A picker finds the connection for a call. It is immutable, but for the state of
// its connections.
type picker struct {
	table Table
	conns map[string]*conn
}

// Pick says which connection a call takes, if it has a key.
func (p *picker) Pick(call balancer.PickInfo) (balancer.PickResult, error) {
	k, ok := call.Ctx.Value(callKey{}).(*keyed)
	if !ok {
		return balancer.PickResult{}, notSent(codes.Internal, leasehold.ErrInternal, call.FullMethodName,
			"the call has no key: the interceptors of package leasegrpc have not seen it")
	}
	addr, ok := p.table.Find(k.key)
	if !ok {
		return balancer.PickResult{}, notSent(codes.Unavailable, leasehold.ErrNoOwner, k.key.String(), "nobody owns the key")
	}
	c := p.conns[addr]
	if c == nil {
		// The table has changed since, and we are about to hear of it.
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	}
	switch v := c.view.Load(); v.state {
	case connectivity.Ready:
		if !c.acquire() {
			return balancer.PickResult{}, notSent(codes.ResourceExhausted, leasehold.ErrLimit, addr,
				"%d calls to the server are under way: the cap on outstanding calls", c.most)
		}
		return balancer.PickResult{SubConn: c.sub, Done: c.done}, nil
	case connectivity.TransientFailure:
		return balancer.PickResult{}, notSent(codes.Unavailable, leasehold.ErrUnavailable, addr,
			"no connection to the server, nothing was sent: %w", v.failure)
	case connectivity.Idle:
		c.connect(v)
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	default: // it is connecting
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	}
}

// NotSent is why a call was not sent to any server. gRPC hands it to interceptors
// as it is, because it is a status; of a code that a policy may use.
type NotSent struct {
	Code codes.Code
	Err  error // a *leasehold.Error
}

func notSent(code codes.Code, kind leasehold.Kind, subject, format string, args ...any) error {
	return &NotSent{code, leasehold.Errorf("route", kind, subject, format, args...)}
}

func (e *NotSent) Error() string { return e.Err.Error() }

// Unwrap gives errors.Is the kind.
func (e *NotSent) Unwrap() error { return e.Err }

// GRPCStatus is what status.FromError looks for.
func (e *NotSent) GRPCStatus() *status.Status { return status.New(e.Code, e.Error()) }
