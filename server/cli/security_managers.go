package cli

import (
	"context"
	"fmt"
	"net"
	"slices"

	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold/secure"
)

// ofManagers are credentials for calls to managers, where it is known who is one. A
// certificate for the right host is not enough: an owner on the same computer has one,
// too, and would be told tokens.
type ofManagers struct {
	credentials.TransportCredentials
	managers []secure.Identity
}

// ClientHandshake is part of the interface.
func (o ofManagers) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	over, who, err := o.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if err != nil {
		return nil, nil, err
	}
	if err := o.check(who); err != nil {
		_ = over.Close() // nothing was said
		return nil, nil, err
	}
	return over, who, nil
}

func (o ofManagers) check(who credentials.AuthInfo) error {
	info, ok := who.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return fmt.Errorf("whoever answers shows no certificate")
	}
	ids := secure.Identities(info.State.PeerCertificates[0])
	if slices.ContainsFunc(ids, func(id secure.Identity) bool {
		return slices.ContainsFunc(o.managers, func(m secure.Identity) bool { _, is := id.Match(m); return is })
	}) {
		return nil
	}
	return fmt.Errorf("whoever answers is %q, which is not a manager's certificate: want %q; --tls-servers says otherwise", ids, o.managers)
}

// Clone is part of the interface.
func (o ofManagers) Clone() credentials.TransportCredentials {
	return ofManagers{o.TransportCredentials.Clone(), o.managers}
}
