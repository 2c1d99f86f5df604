package fleasenet

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	// resolveInterval is the interval of name resolution. It bounds the time to find a peer that
	// has moved to another address.
	resolveInterval = 5 * time.Second
	resolveTimeout  = 3 * time.Second
)

// A udpPeer is a peer with its resolved address.
type udpPeer struct {
	peer Peer
	ours bool // the peer has the id of this process: a twin may listen there
	// family is the address family of the socket: ip, ip4 or ip6.
	family    string
	maxPacket int // from Config; 0: default
	at        atomic.Pointer[udpAddr]
}

// A udpAddr is the resolved address of a peer, with its maximum packet size.
type udpAddr struct {
	addr  *net.UDPAddr
	limit int
}

// resolvePeers sets the addresses of peers with IP addresses, and returns the peers with host names.
func (d *udpNet) resolvePeers(c *Config) (names []*udpPeer, _ error) {
	family := familyOf(d.conn.LocalAddr().(*net.UDPAddr))
	for _, p := range c.Peers {
		if p.Process == c.Self && canonical(p.Addr) == canonical(d.Addr()) {
			continue // this process
		}
		to := &udpPeer{peer: p, ours: p.Process == c.Self, family: family, maxPacket: c.MaxPacket}
		addr, err := netip.ParseAddrPort(p.Addr)
		switch ip := addr.Addr().Unmap(); {
		case err != nil:
			names = append(names, to)
		case family == "ip4" && !ip.Is4() || family == "ip6" && ip.Is4():
			if to.ours {
				continue
			}
			return nil, invalid(p.Addr, "address of member %s is unreachable from the listen address %s: use one IP version", p.name(), d.Addr())
		default:
			to.setAddr(ip, addr.Port())
		}
		d.peers[p.Process] = to
	}
	return names, nil
}

// familyOf returns the address family that a socket reaches: both for an unspecified IPv6
// address.
func familyOf(local *net.UDPAddr) string {
	ip := local.AddrPort().Addr().Unmap()
	switch {
	case ip == netip.IPv6Unspecified():
		return "ip"
	case ip.Is4():
		return "ip4"
	}
	return "ip6"
}

// followName resolves a name periodically until the context ends. After a failure the last address stays. An unknown
// name is only logged: the peer may start later.
func (d *udpPeer) followName(ctx context.Context, log *slog.Logger) {
	for {
		if err := d.resolve(ctx); err != nil && ctx.Err() == nil && d.at.Load() == nil && !d.ours {
			log.Warn("address of a member cannot be resolved", "of", d.peer.name(), "addr", d.peer.Addr, "err", err)
		}
		if !pause(ctx, resolveInterval) {
			return
		}
	}
}

func (d *udpPeer) resolve(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(d.peer.Addr)
	if err != nil {
		return err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return err
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, d.family, host)
	if err != nil {
		return err
	}
	d.setAddr(ips[0].Unmap(), uint16(number))
	return nil
}

func (d *udpPeer) setAddr(ip netip.Addr, port uint16) {
	limit := UsualPacket
	if ip.IsLoopback() {
		limit = MaxPacket
	}
	d.at.Store(&udpAddr{addr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, port)), limit: cmp.Or(d.maxPacket, limit)})
}
