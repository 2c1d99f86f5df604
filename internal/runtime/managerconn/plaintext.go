package managerconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// Exposed reports whether a listener that other hosts reach accepts plaintext connections.
func Exposed(l net.Listener, c credentials.TransportCredentials) bool {
	return c.Info().SecurityProtocol == insecure.NewCredentials().Info().SecurityProtocol && address.CheckPlaintextListener(l, "") != nil
}

// Plaintext returns credentials that accept plaintext connections to loopback addresses only. The check runs
// after the connection is established, because a name may resolve to another host, and because the
// address of a redirect to the leader is not part of the configuration.
func Plaintext() credentials.TransportCredentials { return local{insecure.NewCredentials()} }

type local struct {
	credentials.TransportCredentials
}

func (l local) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if to, ok := conn.RemoteAddr().(*net.TCPAddr); ok && !to.IP.IsLoopback() {
		return nil, nil, errors.New(to.String() + " is not a loopback address, and the connection would be plaintext: " + address.Remedy("Credentials"))
	}
	plain, info, err := l.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if err != nil {
		return nil, nil, err
	}
	return &clientConn{Conn: plain}, info, nil
}

// clientConn explains a connection that the server closes before it has sent anything: a server
// that requires TLS does so.
type clientConn struct {
	net.Conn
	received atomic.Bool
}

func (c *clientConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	switch {
	case n > 0:
		if !c.received.Load() {
			c.received.Store(true)
		}
	case err != nil && !c.received.Load():
		err = fmt.Errorf(wire.RequiresTLS+": %w", err)
	}
	return n, err
}

func (l local) Clone() credentials.TransportCredentials {
	return local{l.TransportCredentials.Clone()}
}
