package managerconn

import (
	"context"
	"net"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/leasehold-dev/leasehold"
)

// After an outage of the network the leader gives owners the time of a lease to return, and expires those
// that are silent then. So the time to reconnect must be shorter than a short lease: at most
// connectTimeout, in which one SYN may be lost, and maxBackoff with its jitter. Without a limit of its
// own, a connection would wait for the system to repeat a lost SYN, after 1, 3 and 7 s.
const (
	connectTimeout = time.Second
	maxBackoff     = time.Second
	// handshakeTimeout includes connectTimeout: TLS takes long when many clients reconnect at once.
	handshakeTimeout = 3 * time.Second
)

// dial returns a connection that is made when it is first used.
//
// The address goes to the dialer as it is, which resolves it at every attempt:
// gRPC's own resolver would look a moved manager up again only after half a
// minute. Attempts that fail are repeated soon, because leases run out in
// seconds.
func dial(addr string, options []grpc.DialOption) (*grpc.ClientConn, error) {
	retry := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff}
	own := []grpc.DialOption{
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: handshakeTimeout}),
		grpc.WithIdleTimeout(0), // we close what is idle ourselves
	}
	if direct(addr) {
		own = append(own, grpc.WithContextDialer(connect))
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, append(own, options...)...)
	if err != nil {
		return nil, &leasehold.Error{Op: "dial", Kind: leasehold.ErrInvalid, Subject: addr, Err: err}
	}
	return conn, nil
}

// direct reports whether a connection to an address is TCP, and goes through no proxy that the
// environment names: then we can make it ourselves.
func direct(addr string) bool {
	if strings.HasPrefix(addr, "unix:") || strings.HasPrefix(addr, "unix-abstract:") {
		return false
	}
	proxy, err := httpproxy.FromEnvironment().ProxyFunc()(&url.URL{Scheme: "https", Host: addr})
	return err == nil && proxy == nil
}

// connect makes a connection that ends with its process. Otherwise the system goes on, when the
// process has been killed, to send what it had said: where the network was broken, for many
// seconds after it works again. A manager takes that for a sign of life, and keeps the
// keys of the dead for another lease.
func connect(ctx context.Context, addr string) (net.Conn, error) {
	// As gRPC would do it: how often it is probed is the system's business.
	d := net.Dialer{Timeout: connectTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: -1, Interval: -1, Count: -1}}
	addrs, err := resolve(ctx, addr)
	if err != nil {
		return nil, err
	}
	conn, err := dialEach(ctx, &d, addrs)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it all is as it was
	}
	return conn, nil
}

// resolve returns all addresses that a name stands for.
func resolve(ctx context.Context, addr string) ([]string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" {
		return []string{addr}, nil // the dialer reports what is wrong
	}
	hosts, err := net.DefaultResolver.LookupHost(ctx, host)
	for i := range hosts {
		hosts[i] = net.JoinHostPort(hosts[i], port)
	}
	return hosts, err
}

// dialEach tries addresses one after the other, each for the time that the dialer has. The dialer
// itself would spend all of it on the first one.
func dialEach(ctx context.Context, d *net.Dialer, addrs []string) (conn net.Conn, err error) {
	for _, addr := range addrs {
		if conn, err = d.DialContext(ctx, "tcp", addr); err == nil || ctx.Err() != nil {
			break
		}
	}
	return conn, err
}
