package lan

import (
	"net/netip"
	"time"
)

// A way is the path from one host to another, with the sum of its troubles.
type way struct {
	trouble Trouble
	free    time.Time // when the previous packets have passed, with a limited rate
}

// forward forwards the packets of a host, until its device is closed.
func (n *Network) forward(from *Host) {
	packet := make([]byte, maxPacket)
	for {
		size, err := from.device.Read(packet)
		if err != nil {
			return
		}
		n.pass(from, packet[:size])
	}
}

// The layout of an IPv4 packet.
const (
	leastPacket = 20
	maxPacket   = 1 << 16
	addrAt      = 16
)

// destination returns the destination address of a packet.
func destination(packet []byte) (netip.Addr, bool) {
	if len(packet) < leastPacket || packet[0]>>4 != 4 {
		return netip.Addr{}, false // IPv6 multicast of the host
	}
	return netip.AddrFrom4([4]byte(packet[addrAt : addrAt+4])), true
}

// pass forwards a packet according to the present troubles.
func (n *Network) pass(from *Host, packet []byte) {
	addr, ok := destination(packet)
	if !ok {
		return
	}
	to, f := n.decide(from, addr, len(packet))
	for _, late := range f {
		if late == 0 {
			to.deliver(packet)
			continue
		}
		n.late.add(late, to, append([]byte(nil), packet...))
	}
}

// decide draws the fate of a packet.
func (n *Network) decide(from *Host, addr netip.Addr, size int) (*Host, fate) {
	n.mu.Lock()
	defer n.mu.Unlock()
	to := n.byAddr[addr]
	if to == nil || n.closed {
		return nil, nil
	}
	w := n.between(from, to)
	var backlog time.Duration
	if w.trouble.Rate > 0 {
		now := time.Now()
		backlog = max(0, w.free.Sub(now))
		w.free = now.Add(backlog)
	}
	f := w.trouble.draw(n.random, backlog)
	if len(f) > 0 {
		w.free = w.free.Add(w.trouble.takes(size))
	}
	n.count(f)
	return to, f
}

// between returns a way, and caches it until troubles change.
func (n *Network) between(from, to *Host) *way {
	w, ok := n.ways[[2]*Host{from, to}]
	if !ok {
		w = &way{}
		for _, s := range n.troubles {
			if s.way.covers(from, to) {
				w.trouble = w.trouble.and(s.trouble)
			}
		}
		n.ways[[2]*Host{from, to}] = w
	}
	return w
}

func (n *Network) count(f fate) {
	switch {
	case len(f) == 0:
		n.counts.Dropped++
	case len(f) > 1:
		n.counts.Duplicated++
	case f[0] > 0:
		n.counts.Delayed++
	default:
		n.counts.Passed++
	}
}
