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
	// resolveEvery is how often names are looked up. A peer that restarts
	// elsewhere under its name is found again after that.
	resolveEvery = 5 * time.Second
	resolveWait  = 3 * time.Second
)

// A destination is a peer's address, which may change if it is a name.
type destination struct {
	peer Peer
	ours bool // it is our own address, and somebody else may be there
	// family is what the socket can reach: ip, ip4 or ip6.
	family    string
	maxPacket int // as configured, 0 if not
	at        atomic.Pointer[place]
}

// A place is where packets for a peer go now, and how large they may be.
type place struct {
	addr  *net.UDPAddr
	limit int
}

// find notes where peers are that have addresses, and returns those that have
// names.
func (d *datagrams) find(c *Config) (names []*destination, _ error) {
	family := familyOf(d.conn.LocalAddr().(*net.UDPAddr))
	for _, p := range c.Peers {
		if p.Process == c.Self && plain(p.Addr) == plain(d.Addr()) {
			continue // it is us
		}
		to := &destination{peer: p, ours: p.Process == c.Self, family: family, maxPacket: c.MaxPacket}
		addr, err := netip.ParseAddrPort(p.Addr)
		switch ip := addr.Addr().Unmap(); {
		case err != nil:
			names = append(names, to)
		case family == "ip4" && !ip.Is4() || family == "ip6" && ip.Is4():
			if to.ours {
				continue
			}
			return nil, invalid(p.Addr, "the address of member %s cannot be reached from %s, where this one listens: use addresses of one version of IP", p.name(), d.Addr())
		default:
			to.settle(ip, addr.Port())
		}
		d.peers[p.Process] = to
	}
	return names, nil
}

// familyOf returns which addresses a socket reaches. One that listens everywhere
// reaches both.
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

// follow looks a name up from time to time until the context ends. If it cannot,
// the last address stays. A name that is not known yet is no error: its bearer
// may start later.
func (d *destination) follow(ctx context.Context, log *slog.Logger) {
	for {
		if err := d.resolve(ctx); err != nil && ctx.Err() == nil && d.at.Load() == nil && !d.ours {
			log.Warn("the name in a member's address is not known", "of", d.peer.name(), "addr", d.peer.Addr, "err", err)
		}
		if !pause(ctx, resolveEvery) {
			return
		}
	}
}

func (d *destination) resolve(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resolveWait)
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
	d.settle(ips[0].Unmap(), uint16(number))
	return nil
}

func (d *destination) settle(ip netip.Addr, port uint16) {
	limit := UsualPacket
	if ip.IsLoopback() {
		limit = MaxPacket
	}
	d.at.Store(&place{addr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, port)), limit: cmp.Or(d.maxPacket, limit)})
}
