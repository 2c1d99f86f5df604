package connlimit

import (
	"cmp"
	"log/slog"
	"net"
	"net/netip"
	"time"
)

// Config has the limits of a listener. The zero value suits servers whose clients are many
// programs of this project.
type Config struct {
	// HandshakeTimeout is the maximum time from accept to the end of the handshake. Default 5 s.
	HandshakeTimeout time.Duration
	// MaxPending is the maximum number of pending connections. Each costs a few kB, and more
	// during a TLS handshake: less than 64 MiB in total by default. A low limit locks out
	// clients: an attacker who opens MaxPending connections faster than a client completes its
	// handshake displaces it. Default 3072, at most Conns.
	MaxPending int
	// Conns is the maximum number of connections. Each takes a file descriptor. Default 16,384.
	Conns int
	// PerHost is the maximum number of connections from one IPv4 address or one IPv6 /64
	// network. Leave room: a whole cluster may share one address. Default a quarter of Conns,
	// at least 64.
	PerHost int
	// PerIdentity is the maximum number of connections of one identity, with [Callers]. Processes
	// with the same certificate, such as lookups of a namespace, share it. Default as PerHost.
	PerIdentity int
	// MaxAnonymous is the maximum number of connections that have completed the handshake
	// without authenticating, with [Callers]. gRPC has allocated its buffers for them, most of
	// the cost of a connection. Default 256.
	MaxAnonymous int
	// Pace is the maximum number of handshakes per second and host; the burst is a tenth of it.
	// A TLS handshake costs far more processor time than a call. Connections above the
	// rate wait, and are dropped if the wait exceeds half of HandshakeTimeout. Loopback
	// addresses count as hosts here. Default no limit.
	Pace int
	// Dropped, if set, is called for every dropped connection. It must not block.
	Dropped func(Reason)
	// Logger receives a summary of dropped connections every 10 s at most. Default none.
	Logger *slog.Logger
}

const (
	defaultTimeout   = 5 * time.Second
	defaultPending   = 3072
	defaultConns     = 1 << 14
	minPerHost       = 64
	defaultAnonymous = 256
)

// A Reason is the cause of a dropped connection: a label of metrics.
type Reason string

const (
	Late    Reason = "late"    // handshake timeout
	Crowded Reason = "crowded" // oldest of too many pending connections
	Full    Reason = "full"    // too many connections, and none pending
	Host    Reason = "host"    // too many connections of its host

	Identity Reason = "identity" // too many connections of its identity
	Pace     Reason = "pace"     // handshake rate of its host exceeded
	Refusals Reason = "refusals" // too many rejected calls
)

// Reasons returns all reasons.
func Reasons() []Reason { return []Reason{Late, Crowded, Full, Host, Identity, Pace, Refusals} }

// reportInterval is the minimum interval of log messages about dropped connections.
const reportInterval = 10 * time.Second

func (c *Config) fill() {
	c.HandshakeTimeout = cmp.Or(max(0, c.HandshakeTimeout), defaultTimeout)
	c.Conns = cmp.Or(max(0, c.Conns), defaultConns)
	c.MaxPending = min(cmp.Or(max(0, c.MaxPending), defaultPending), c.Conns)
	c.PerHost = cmp.Or(max(0, c.PerHost), max(c.Conns/4, minPerHost))
	c.PerIdentity = cmp.Or(max(0, c.PerIdentity), max(c.Conns/4, minPerHost))
	c.MaxAnonymous = cmp.Or(max(0, c.MaxAnonymous), defaultAnonymous)
	if c.Dropped == nil {
		c.Dropped = func(Reason) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// countedHost returns the host that PerHost counts: an invalid prefix for loopback and
// for addresses that are not TCP.
func countedHost(addr net.Addr) netip.Prefix {
	if ipOf(addr).IsLoopback() {
		return netip.Prefix{}
	}
	return prefixOf(addr)
}

// prefixOf returns the host of an address, an invalid prefix if it is not TCP.
func prefixOf(addr net.Addr) netip.Prefix {
	ip := ipOf(addr)
	if !ip.IsValid() {
		return netip.Prefix{}
	}
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	host, _ := ip.Prefix(bits) // it fails only if there are fewer bits
	return host
}

// ipOf returns the IP of an address, an invalid one if it is not TCP.
func ipOf(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}
