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

// To returns credentials for calling one party only: the one that the leader has let in
// under this identity. Whoever else answers at its address hears nothing, whatever
// certificate it has. Without an identity they are the credentials as they are, and so they
// are if they are for plain text: somebody has chosen that.
func To(identity secure.Identity, with credentials.TransportCredentials) credentials.TransportCredentials {
	if identity == "" || !Shows(with) {
		return with
	}
	return named{TransportCredentials: with, identity: identity}
}

// Shows reports whether peers of such connections show who they are.
func Shows(c credentials.TransportCredentials) bool {
	return c != nil && c.Info().SecurityProtocol != "insecure"
}

type named struct {
	credentials.TransportCredentials
	identity secure.Identity
}

// ClientHandshake is part of the interface.
func (n named) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := n.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if err != nil {
		return nil, nil, err
	}
	if err := isWho(info, n.identity); err != nil {
		_ = secured.Close() // nothing was said
		return nil, nil, err
	}
	return secured, info, nil
}

// Clone is part of the interface.
func (n named) Clone() credentials.TransportCredentials {
	return named{TransportCredentials: n.TransportCredentials.Clone(), identity: n.identity}
}

func isWho(info credentials.AuthInfo, want secure.Identity) error {
	state, ok := info.(credentials.TLSInfo)
	if !ok || len(state.State.PeerCertificates) == 0 {
		return fmt.Errorf("the other side shows no certificate, and the leader knows it as %q", want)
	}
	if is := secure.Identities(state.State.PeerCertificates[0]); !slices.Contains(is, want) {
		return fmt.Errorf("the other side is %q, and the leader has let %q in", is, want)
	}
	return nil
}

// allow refuses a source that is not who the leader says. It may well have the ticket: it
// is told nothing about that.
func (s *Server) allow(ctx context.Context, in *Incoming) error {
	if in.from == "" || !Shows(s.Credentials) {
		return nil
	}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return status.Error(codes.Internal, "a call from nowhere")
	}
	if err := isWho(p.AuthInfo, in.from); err != nil {
		s.Logger.Warn("a stranger wanted to send state", "ticket", in.ticket.Short(), "from", p.Addr, "why", err)
		return status.Error(codes.PermissionDenied, "no leader has announced this move here, or it is over")
	}
	return nil
}
