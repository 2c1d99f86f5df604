package statemove

import (
	"context"
	"fmt"
	"net"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold/secure"
)

// To returns credentials that connect only to a peer with the identity that the leader has announced. A peer with any
// other certificate receives no data. To returns the given credentials if the identity is empty or
// if they are for plaintext.
func To(identity secure.Identity, with credentials.TransportCredentials) credentials.TransportCredentials {
	if identity == "" || !Shows(with) {
		return with
	}
	return pinnedIdentity{TransportCredentials: with, identity: identity}
}

// Shows reports whether credentials authenticate peers.
func Shows(c credentials.TransportCredentials) bool {
	return c != nil && c.Info().SecurityProtocol != "insecure"
}

type pinnedIdentity struct {
	credentials.TransportCredentials
	identity secure.Identity
}

// ClientHandshake implements [credentials.TransportCredentials].
func (n pinnedIdentity) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := n.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if err != nil {
		return nil, nil, err
	}
	if err := checkIdentity(info, n.identity); err != nil {
		_ = secured.Close() // no data was sent
		return nil, nil, err
	}
	return secured, info, nil
}

// Clone implements [credentials.TransportCredentials].
func (n pinnedIdentity) Clone() credentials.TransportCredentials {
	return pinnedIdentity{TransportCredentials: n.TransportCredentials.Clone(), identity: n.identity}
}

func checkIdentity(info credentials.AuthInfo, want secure.Identity) error {
	state, ok := info.(credentials.TLSInfo)
	if !ok || len(state.State.PeerCertificates) == 0 {
		return fmt.Errorf("peer rejected: it has no certificate, want the identity %q", want)
	}
	if got := secure.Identities(state.State.PeerCertificates[0]); !slices.Contains(got, want) {
		return fmt.Errorf("peer rejected: its identities are %q, want %q", got, want)
	}
	return nil
}

// authorize rejects a source without the announced identity. The reply does not reveal whether its ticket is
// valid.
func (s *Server) authorize(ctx context.Context, in *Incoming) error {
	if in.from == "" || !Shows(s.Credentials) {
		return nil
	}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return status.Error(codes.Internal, "call rejected: it has no peer")
	}
	if err := checkIdentity(p.AuthInfo, in.from); err != nil {
		s.Logger.Warn("transfer rejected: the source has another identity than announced", "ticket", in.ticket.Short(), "from", p.Addr, "why", err)
		return errUnknownTicket
	}
	return nil
}
