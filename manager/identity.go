package manager

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/connlimit"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
)

// ownerIdentity returns the identity by which other owners authenticate an owner during a transfer
// of state: the identity of its certificate that the policy permits to hold leases under this owner
// ID. Without a policy it is the first identity. It is "" without a certificate.
func (m *Manager) ownerIdentity(ctx context.Context, of leasehold.Namespace, owner leasehold.OwnerID) secure.Identity {
	ids := slices.DeleteFunc(certificateIdentities(ctx), func(id secure.Identity) bool { return len(id) > protocol.MaxIdentityLen })
	if m.cfg.Access != nil {
		for _, id := range ids {
			if m.cfg.Access.Allow(access.Known(id), leaseholdv1.OwnerService_Hold_FullMethodName, of, owner) == nil {
				return id
			}
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}

// markCall and markStream run after the policy, and mark the connection as authenticated, which
// exempts it from the limits before authentication.
func markCall(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	markAuthenticated(ctx)
	return handle(ctx, request)
}

func markStream(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	markAuthenticated(stream.Context())
	return handle(service, stream)
}

func markAuthenticated(ctx context.Context) {
	if c, ok := access.CallerFrom(ctx); ok && len(c.Identities()) > 0 { // health checks need no identity
		connlimit.Known(ctx)
	}
}

// certificateIdentities returns the identities of the caller's certificate.
func certificateIdentities(ctx context.Context) []secure.Identity {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return nil
	}
	return secure.Identities(info.State.PeerCertificates[0])
}
