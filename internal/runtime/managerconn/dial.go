package managerconn

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerdns"
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
	// unackedTimeout allows for three lost packets in a row: the system repeats the first after 0.2 s.
	unackedTimeout = time.Second
)

// Dial returns a connection to a manager that is established at its first use. The options follow its own and
// override them; they must contain transport credentials.
//
// The dialer resolves the address at every attempt. gRPC's own resolver would resolve the address of a moved manager
// only after half a minute. The backoff is short because leases expire within seconds.
func Dial(addr string, options []grpc.DialOption) (*grpc.ClientConn, error) {
	return dial(addr, net.DefaultResolver, options)
}

func dial(addr string, r managerdns.Resolver, options []grpc.DialOption) (*grpc.ClientConn, error) {
	retry := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff}
	own := []grpc.DialOption{
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: handshakeTimeout}),
		grpc.WithIdleTimeout(0), // Link closes idle connections
	}
	if direct(addr) {
		own = append(own, grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return connect(ctx, r, addr) }))
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, append(own, options...)...)
	if err != nil {
		return nil, &leasehold.Error{Op: "dial", Kind: leasehold.ErrInvalid, Subject: addr, Err: err}
	}
	return conn, nil
}

// direct reports whether a connection to an address is TCP without a proxy from the environment. Only then
// connect can establish it.
func direct(addr string) bool {
	if strings.HasPrefix(addr, "unix:") || strings.HasPrefix(addr, "unix-abstract:") {
		return false
	}
	proxy, err := httpproxy.FromEnvironment().ProxyFunc()(&url.URL{Scheme: "https", Host: addr})
	return err == nil && proxy == nil
}

// connect establishes a connection that is reset when its process ends. Without the reset the system
// continues to send buffered data of a killed process, after a network failure for many seconds. A manager
// that receives an old renewal extends the leases of the dead process.
func connect(ctx context.Context, r managerdns.Resolver, addr string) (net.Conn, error) {
	// Keepalive as gRPC configures it: with the intervals of the system.
	d := net.Dialer{Timeout: connectTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: -1, Interval: -1, Count: -1}}
	addrs, err := resolve(ctx, r, addr)
	if err != nil {
		return nil, err
	}
	conn, err := dialEach(ctx, &d, addrs)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // an error only means no reset
		if raw, err := tcp.SyscallConn(); err == nil {
			limitUnacked(raw, unackedTimeout)
		}
	}
	return conn, nil
}

// resolve returns all addresses of a name.
func resolve(ctx context.Context, r managerdns.Resolver, addr string) (addrs []string, err error) {
	host, port, err := net.SplitHostPort(addr)
	if _, notIP := netip.ParseAddr(host); err != nil || host == "" || notIP == nil {
		return []string{addr}, nil // the dialer returns the error
	}
	hosts, err := r.LookupHost(ctx, host)
	for _, each := range hosts {
		addrs = append(addrs, net.JoinHostPort(each, port))
	}
	return addrs, err
}

// dialEach tries addresses one after the other, each with the timeout of the dialer. The dialer itself
// would divide one timeout among all addresses.
func dialEach(ctx context.Context, d *net.Dialer, addrs []string) (conn net.Conn, err error) {
	for _, addr := range addrs {
		if conn, err = d.DialContext(ctx, "tcp", addr); err == nil || ctx.Err() != nil {
			break
		}
	}
	return conn, err
}
