package connlimit

import (
	"cmp"
	"log/slog"
	"net"
	"net/netip"
	"time"
)

// Config says what a gate lets through. The zero value is for servers that have to do with
// programs of ours, and many of them.
type Config struct {
	// Wait is how long a connection has to introduce itself. Default 5 s.
	Wait time.Duration
	// Waiting is how many may be about to. Each costs a few kB, and more once it has begun
	// to shake hands over TLS: all together less than 64 MiB, by default. Too few are a way to keep others out: a peer that needs longer
	// to introduce itself than an attacker needs for that many connections is dropped
	// before it has. Default 3072, or as many as Conns.
	Waiting int
	// Conns is how many connections there may be in all, each of which takes a file
	// descriptor. Default 16,384.
	Conns int
	// PerHost is how many of them may be from one address, or from one network of 64 bits
	// with IPv6, where everybody has that many addresses. It should be generous: a whole
	// cluster may be behind one address. Default a quarter of Conns, and 64 at least.
	PerHost int
	// PerIdentity is how many of them one identity may have, with [Callers]. Processes that
	// share one, as lookups of a namespace may, share them. Default as PerHost.
	PerIdentity int
	// Strangers is how many of those that wait may have said all but who they are, with
	// [Callers]: gRPC has made its buffers for them, which are most of what a connection
	// costs. Default 256.
	Strangers int
	// Pace is how many connections of one host are let through in a second, and hardly any more
	// at once: to shake hands over TLS costs the processor far more than a call. The others
	// wait for their turn, and go if that is more than half of Wait. The loopback is a host like
	// any other in this. Default: as many as come.
	Pace int
	// Dropped, if set, is called for every connection that is dropped. It must not wait.
	Dropped func(Reason)
	// Logger hears how many were dropped and why, now and then. Default: nobody does.
	Logger *slog.Logger
}

// The usual limits.
const (
	usualWait    = 5 * time.Second
	usualWaiting = 3072
	usualConns   = 1 << 14
	leastPerHost = 64

	usualStrangers = 256
)

// A Reason is why a connection was dropped.
type Reason string

// The reasons.
const (
	Late    Reason = "late"    // it has not introduced itself in time
	Crowded Reason = "crowded" // it was the oldest of those that had not, when there were too many
	Full    Reason = "full"    // there were too many, and all had introduced themselves
	Host    Reason = "host"    // there were too many of its host

	Identity Reason = "identity" // there were too many of its identity
	Pace     Reason = "pace"     // its host connects faster than it may
	Refusals Reason = "refusals" // its calls were refused, again and again
)

// Reasons are all of them.
func Reasons() []Reason { return []Reason{Late, Crowded, Full, Host, Identity, Pace, Refusals} }

// reportEvery is how often the log hears of those that were dropped, at most.
const reportEvery = 10 * time.Second

func (c *Config) fill() {
	c.Wait = cmp.Or(max(0, c.Wait), usualWait)
	c.Conns = cmp.Or(max(0, c.Conns), usualConns)
	c.Waiting = min(cmp.Or(max(0, c.Waiting), usualWaiting), c.Conns)
	c.PerHost = cmp.Or(max(0, c.PerHost), max(c.Conns/4, leastPerHost))
	c.PerIdentity = cmp.Or(max(0, c.PerIdentity), max(c.Conns/4, leastPerHost))
	c.Strangers = cmp.Or(max(0, c.Strangers), usualStrangers)
	if c.Dropped == nil {
		c.Dropped = func(Reason) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// hostOf returns what connections are counted by; an invalid prefix if they are not: those
// of this computer, and those of networks that have no such addresses.
func hostOf(addr net.Addr) netip.Prefix {
	if ipOf(addr).IsLoopback() {
		return netip.Prefix{}
	}
	return prefixOf(addr)
}

// prefixOf returns the host of an address; an invalid prefix if it has none.
func prefixOf(addr net.Addr) netip.Prefix {
	ip := ipOf(addr)
	if !ip.IsValid() {
		return netip.Prefix{}
	}
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	host, _ := ip.Prefix(bits) // it fails if there are fewer bits
	return host
}

// ipOf returns the IP of an address; an invalid one if it has none.
func ipOf(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}
