package keybalancer

import (
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
)

// A picker selects the connection of a call. It is immutable except for the state of its connections.
type picker struct {
	table Table
	conns map[string]*conn
}

// Pick returns the connection to the owner of the call's key.
func (p *picker) Pick(call balancer.PickInfo) (balancer.PickResult, error) {
	a, ok := call.Ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return balancer.PickResult{}, notSent(codes.Internal, leasehold.ErrInternal, call.FullMethodName,
			"the call has no key: use the interceptors of package leasegrpc")
	}
	switch addr, owned := p.table.Find(a.key); {
	case !owned:
		return balancer.PickResult{}, notSent(codes.Unavailable, leasehold.ErrNoOwner, a.key.String(), "the key has no owner")
	case addr != a.addr:
		return balancer.PickResult{}, notSent(codes.Unavailable, leasehold.ErrNoOwner, a.key.String(),
			"the key moved from %s to %s before the call was sent", a.addr, addr)
	}
	c := p.conns[a.addr]
	if c == nil {
		// The table has changed, and a new picker follows.
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	}
	switch v := c.view.Load(); v.state {
	case connectivity.Ready:
		if !c.acquire() {
			return balancer.PickResult{}, notSent(codes.ResourceExhausted, leasehold.ErrLimit, a.addr,
				"%d calls to the server are outstanding: the limit is reached", c.maxOutstanding)
		}
		a.sent.Store(true)
		return balancer.PickResult{SubConn: c.sub, Done: c.done}, nil
	case connectivity.TransientFailure:
		return balancer.PickResult{}, notSent(codes.Unavailable, leasehold.ErrUnavailable, a.addr,
			"no connection to the server, nothing was sent: %w", v.failure)
	case connectivity.Idle:
		c.connect(v)
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	default: // connecting
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	}
}

// NotSent is the error of a call that was not sent to any server. gRPC passes it to interceptors unchanged,
// because it is a status with a code that a policy may use.
type NotSent struct {
	Code codes.Code
	Err  error // a *leasehold.Error
}

func notSent(code codes.Code, kind leasehold.Kind, subject, format string, args ...any) error {
	return &NotSent{code, leasehold.Errorf("route", kind, subject, format, args...)}
}

func (e *NotSent) Error() string { return e.Err.Error() }

// Unwrap returns the error with the kind.
func (e *NotSent) Unwrap() error { return e.Err }

// GRPCStatus returns the status for status.FromError.
func (e *NotSent) GRPCStatus() *status.Status { return status.New(e.Code, e.Error()) }
