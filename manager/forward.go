package manager

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// connToLeader checks the version of a request, and returns a connection to the leader if that is
// another manager, nil if the request is served here. A forwarded request is not forwarded
// again: two managers that each consider the other the leader would loop.
func (m *Manager) connToLeader(ctx context.Context, r versioned) (*grpc.ClientConn, error) {
	if err := wire.CheckClient(r.GetVersion()); err != nil {
		return nil, err
	}
	if len(metadata.ValueFromIncomingContext(ctx, access.ForwardedHeader)) > 0 {
		return nil, nil
	}
	var leader string
	err := m.driver.Do(ctx, func(now mono.Instant) {
		if !m.node.Leads(now) {
			leader = string(m.node.Living(now))
		}
	})
	if err != nil {
		return nil, err
	}
	if leader == "" || leader == m.cfg.Advertise {
		return nil, nil
	}
	return m.leader.to(leader)
}

// outgoingContext adds the headers of a forwarded call: the mark, the original caller and this
// manager.
func (m *Manager) outgoingContext(ctx context.Context) context.Context {
	return m.introduce(metadata.AppendToOutgoingContext(access.Forward(ctx), access.ForwardedHeader, "1"))
}

// introduce adds the headers that identify this manager.
func (m *Manager) introduce(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, managerHeader, m.cfg.Advertise, httpHeader, m.cfg.HTTP, buildHeader, m.cfg.Build)
}

// versioned is a request with the version of the protocol.
type versioned interface{ GetVersion() uint32 }

// forward checks the version of a request and forwards it to the leader, unless this manager
// leads. It reports whether the call is done, with a reply or an error.
func forward[Req versioned, Resp any](ctx context.Context, m *Manager, r Req,
	call func(leaseholdv1.AdminServiceClient, context.Context, Req, ...grpc.CallOption) (*Resp, error),
) (*Resp, bool, error) {
	conn, err := m.connToLeader(ctx, r)
	if conn == nil || err != nil {
		return nil, err != nil, wire.FromError(err)
	}
	answer, err := call(leaseholdv1.NewAdminServiceClient(conn), m.outgoingContext(ctx), r)
	return answer, true, explain(m, conn, err)
}

// forwardDiskless is forward for requests that any manager serves from the store: it forwards only in a diskless
// group.
func forwardDiskless[Req versioned, Resp any](ctx context.Context, m *Manager, r Req,
	call func(leaseholdv1.AdminServiceClient, context.Context, Req, ...grpc.CallOption) (*Resp, error),
) (*Resp, bool, error) {
	if m.group != nil {
		return forward(ctx, m, r, call)
	}
	err := wire.CheckClient(r.GetVersion())
	return nil, err != nil, wire.FromError(err)
}

// forwardStream is forward for server-streaming calls.
func forwardStream[Req versioned, Resp any](ctx context.Context, m *Manager, r Req,
	call func(leaseholdv1.AdminServiceClient, context.Context, Req, ...grpc.CallOption) (grpc.ServerStreamingClient[Resp], error),
	send func(*Resp) error,
) (bool, error) {
	conn, err := m.connToLeader(ctx, r)
	if conn == nil || err != nil {
		return err != nil, wire.FromError(err)
	}
	pieces, err := call(leaseholdv1.NewAdminServiceClient(conn), m.outgoingContext(ctx), r)
	if err != nil {
		return true, explain(m, conn, err)
	}
	for {
		piece, err := pieces.Recv()
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return true, explain(m, conn, err)
		}
		if err := send(piece); err != nil {
			return true, err
		}
	}
}

// explain adds the leader to an error if it is unreachable, since the caller has called this
// manager. Errors from the leader are returned as they are.
func explain(m *Manager, conn *grpc.ClientConn, err error) error {
	ours := wire.ToError(err)
	if leasehold.KindOf(ours) != leasehold.ErrUnavailable || len(status.Convert(err).Details()) > 0 {
		return err
	}
	return wire.FromError(leasehold.Errorf("forward to the leader", leasehold.ErrUnavailable, conn.Target()[len("passthrough:///"):],
		"%s is a standby, and the leader does not reply: %w", m.cfg.Advertise, ours))
}
