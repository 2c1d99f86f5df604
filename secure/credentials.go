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

// Client returns credentials for gRPC clients, for as many connections as there
// are. Each handshake goes by the files of its time. A server must be one of
// servers, or of Config.Servers if none are given here, or else have the host
// name or address that was dialled.
func (k *Keeper) Client(servers ...Identity) credentials.TransportCredentials {
	return &clientCredentials{keeper: k, servers: k.serversOr(servers)}
}

// Server returns credentials for gRPC servers, which verify a client's
// certificate if it has one. What such a client may do is for package access to
// say, and so is what becomes of a client without.
func (k *Keeper) Server() credentials.TransportCredentials { return k.ServerWith(IfGiven) }

// ServerWith is Server with something else wanted of clients. If clients are
// given, whoever connects must have a certificate with one of these identities.
func (k *Keeper) ServerWith(auth ClientAuth, clients ...Identity) credentials.TransportCredentials {
	config := k.ServerTLS(auth, clients...)
	config.NextProtos = []string{"h2"}
	return &serverCredentials{TransportCredentials: credentials.NewTLS(config), keeper: k}
}

// clientCredentials shake hands with a config for each connection, because only
// the caller of the handshake knows the host.
type clientCredentials struct {
	keeper  *Keeper
	servers []Identity
}

func (c *clientCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	host := hostOf(authority)
	secured, info, err := credentials.NewTLS(c.keeper.clientTLS(host, c.servers)).ClientHandshake(ctx, host, conn)
	if err != nil {
		return nil, nil, err
	}
	return hearing{secured}, info, nil
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

// serverCredentials log whom they refuse: gRPC tells nobody.
type serverCredentials struct {
	credentials.TransportCredentials
	keeper *Keeper
}

func (s *serverCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	from := conn.RemoteAddr()
	secured, info, err := s.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		s.keeper.refusals.log(s.keeper.cfg.Logger, from, err)
	}
	return secured, info, err
}

func (s *serverCredentials) Clone() credentials.TransportCredentials {
	return &serverCredentials{TransportCredentials: s.TransportCredentials.Clone(), keeper: s.keeper}
}

// refusals keep a flood of strangers out of the log: of each second they log
// one, and how many there were since.
type refusals struct {
	mu     sync.Mutex
	last   time.Time
	silent int
}

func (r *refusals) log(logger *slog.Logger, from net.Addr, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.last) < time.Second {
		r.silent++
		return
	}
	logger.Warn("a connection was refused", "from", from.String(), "error", err, "others_before", r.silent)
	r.last, r.silent = now, 0
}

// A client of TLS 1.3 has finished its handshake before the server has looked at its
// certificate. A server that refuses it says so in an alert and hangs up; if the client
// is writing at that moment it sees a broken pipe, and the alert lies unread. Whoever
// looks for the cause needs the alert.

// lastWords is how long we listen for an alert when a connection has broken: it came
// before the end of the connection, or not at all.
const lastWords = 100 * time.Millisecond

// hearing is a client's end of a connection that tells an alert from a broken one.
type hearing struct{ net.Conn }

func (h hearing) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	return n, refused(err)
}

func (h hearing) Write(b []byte) (int, error) {
	n, err := h.Conn.Write(b)
	if err != nil {
		err = h.why(err)
	}
	return n, err
}

// why is the alert that a connection has ended with, or else the error of writing to it.
// An alert that somebody has read already is returned again.
func (h hearing) why(err error) error {
	if h.SetReadDeadline(time.Now().Add(lastWords)) != nil {
		return err
	}
	var one [1]byte
	if _, said := h.Conn.Read(one[:]); isAlert(said) {
		return refused(said)
	}
	return err
}

func refused(err error) error {
	if !isAlert(err) {
		return err
	}
	return fmt.Errorf("the server refuses our certificate, or that we show none; its log says why: %w", err)
}

// isAlert: crypto/tls has no type for alerts of the other side that it lets us see.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}
