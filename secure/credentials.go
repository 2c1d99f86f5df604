package secure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// Client returns credentials for gRPC clients, for any number of connections. Each
// handshake uses the current files. The server must have one of the identities in servers
// or, without arguments, in Config.Servers; if both are empty, its certificate must have
// the dialled host name or address.
func (k *Keeper) Client(servers ...Identity) credentials.TransportCredentials {
	return &clientCredentials{keeper: k, servers: k.serversOr(servers)}
}

// Server returns credentials for gRPC servers, which verify a client's certificate if it
// has one. Package access authorizes clients with and without a certificate.
func (k *Keeper) Server() credentials.TransportCredentials { return k.ServerWith(IfGiven) }

// ServerWith is Server with another ClientAuth. If clients is not empty, every client must
// have a certificate with one of these identities.
func (k *Keeper) ServerWith(auth ClientAuth, clients ...Identity) credentials.TransportCredentials {
	config := k.ServerTLS(auth, clients...)
	config.NextProtos = []string{"h2"}
	return &serverCredentials{TransportCredentials: credentials.NewTLS(config), keeper: k}
}

// clientCredentials use one config for each connection, because the host is an argument of
// the handshake.
type clientCredentials struct {
	keeper  *Keeper
	servers []Identity
}

// ClientConfig returns the config of credentials that Client returned, with the accepted servers: a
// supervisor dials managers in place of a process that has ended. It returns false for other credentials.
func ClientConfig(c credentials.TransportCredentials) (Config, bool) {
	own, ok := c.(*clientCredentials)
	if !ok {
		return Config{}, false
	}
	cfg := own.keeper.cfg
	cfg.Servers = own.servers
	return cfg, true
}

func (c *clientCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	host := hostOf(authority)
	secured, info, err := credentials.NewTLS(c.keeper.clientTLS(host, c.servers)).ClientHandshake(ctx, host, conn)
	if err != nil {
		return nil, nil, err
	}
	return alertConn{secured}, info, nil
}

func (c *clientCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return c.keeper.Server().ServerHandshake(conn)
}

func (c *clientCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

func (c *clientCredentials) Clone() credentials.TransportCredentials {
	clone := *c
	return &clone
}

func (c *clientCredentials) OverrideServerName(string) error {
	return errors.New("use grpc.WithAuthority, or Servers")
}

// serverCredentials log failed handshakes, which gRPC does not.
type serverCredentials struct {
	credentials.TransportCredentials
	keeper *Keeper
}

func (s *serverCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	from := conn.RemoteAddr()
	secured, info, err := s.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		s.keeper.rejections.log(s.keeper.cfg.Logger, from, err)
	}
	return secured, info, err
}

func (s *serverCredentials) Clone() credentials.TransportCredentials {
	return &serverCredentials{TransportCredentials: s.TransportCredentials.Clone(), keeper: s.keeper}
}

// A rejectionLog limits the log of failed handshakes to one line per second, with the
// number of suppressed lines.
type rejectionLog struct {
	mu         sync.Mutex
	last       time.Time
	suppressed int
}

func (r *rejectionLog) log(logger *slog.Logger, from net.Addr, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.last) < time.Second {
		r.suppressed++
		return
	}
	logger.Warn("connection rejected", "from", from.String(), "error", err, "others_before", r.suppressed)
	r.last, r.suppressed = now, 0
}

// alertTimeout bounds the read of an alert after a failed write: the alert precedes the
// end of the connection.
const alertTimeout = 100 * time.Millisecond

// An alertConn is a client's connection that returns the server's TLS alert in place of a
// broken pipe. In TLS 1.3 the client's handshake completes before the server verifies the
// client's certificate. A server that rejects it sends an alert and closes the connection;
// a client that is writing gets a broken pipe, and the alert with the cause is unread.
type alertConn struct{ net.Conn }

func (h alertConn) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	return n, explainAlert(err)
}

func (h alertConn) Write(b []byte) (int, error) {
	n, err := h.Conn.Write(b)
	if err != nil {
		err = h.readAlert(err)
	}
	return n, err
}

// readAlert returns the alert with which the connection ended, or the given error if there
// is none. crypto/tls returns an alert that was read before again.
func (h alertConn) readAlert(err error) error {
	if h.SetReadDeadline(time.Now().Add(alertTimeout)) != nil {
		return err
	}
	var one [1]byte
	if _, readErr := h.Conn.Read(one[:]); isAlert(readErr) {
		return explainAlert(readErr)
	}
	return err
}

func explainAlert(err error) error {
	if !isAlert(err) {
		return err
	}
	return fmt.Errorf("the server rejects the client's certificate, or requires one; its log has the reason: %w", err)
}

// isAlert reports whether err is an alert of the peer; crypto/tls exports no type for it.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}
