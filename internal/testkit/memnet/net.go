// Package memnet is a network in memory: hosts that listen and dial, can be cut off, frozen and killed. It
// works on virtual time, in bubbles of testing/synctest.
//
// A connection behaves like TCP. Data arrives in order, after the network's latency, and so does the end
// of the stream. To dial or to be refused takes no time. A cut holds back data and dials until it is
// healed. A host that dies resets its connections, which a cut delays, too. A frozen host neither reads
// nor writes: to others it looks like a stopped process.
//
// Everything is under the one lock of its network, so that the order of events is clear.
package memnet

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// A Net is a network. Its methods, and those of hosts and connections, are for many goroutines at once.
type Net struct {
	latency time.Duration

	mu      sync.Mutex
	dialing bell
	hosts   map[string]*Host
	cuts    map[[2]string]bool
}

// New returns a network without hosts. What is sent takes as long as latency says.
func New(latency time.Duration) *Net {
	return &Net{latency: latency, hosts: make(map[string]*Host), cuts: make(map[[2]string]bool)}
}

// Host returns the host of a name, a new one if there is none or it has died.
func (n *Net) Host(name string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[name]
	if h == nil || h.dead {
		h = &Host{net: n, name: name, listeners: make(map[int]*listener), conns: make(map[*conn]bool), port: 32768}
		n.hosts[name] = h
	}
	return h
}

// Cut separates two hosts, by name, in both directions until they are healed.
func (n *Net) Cut(a, b string) { n.setCut(a, b, true) }

// Heal joins two hosts again.
func (n *Net) Heal(a, b string) { n.setCut(a, b, false) }

func (n *Net) setCut(a, b string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if cut {
		n.cuts[link(a, b)] = true
	} else {
		delete(n.cuts, link(a, b))
	}
	n.all()
}

// HealAll joins a host with all others again.
func (n *Net) HealAll(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for l := range n.cuts {
		if l[0] == name || l[1] == name {
			delete(n.cuts, l)
		}
	}
	n.all()
}

func link(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

// A Host is a computer in a network.
type Host struct {
	net  *Net
	name string

	// Under the network's lock.
	dead, frozen bool
	listeners    map[int]*listener
	conns        map[*conn]bool
	port         int // the last that was given to a connection
}

// Name returns the host's name, which is also its address.
func (h *Host) Name() string { return h.name }

// Freeze stops whatever goes into the host and comes out of it, until Thaw.
func (h *Host) Freeze() { h.set(func() { h.frozen = true }) }

// Thaw lets a frozen host go on.
func (h *Host) Thaw() { h.set(func() { h.frozen = false }) }

// Kill ends all that the host has open. It can do nothing any more.
func (h *Host) Kill() {
	h.set(func() {
		h.dead, h.frozen = true, false
		for _, l := range h.listeners {
			l.end()
		}
		for c := range h.conns {
			c.reset()
		}
	})
}

func (h *Host) set(change func()) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	change()
	h.net.all()
}

// Dial connects to a host and port.
func (h *Host) Dial(ctx context.Context, address string) (net.Conn, error) {
	name, port, err := split(address)
	if err != nil {
		return nil, dialError(address, err)
	}
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for h.frozen || n.cuts[link(h.name, name)] {
		if ctx.Err() != nil || h.dead {
			break
		}
		n.dialing.wait(n, ctx.Done(), time.Time{})
	}
	if err := ctx.Err(); err != nil {
		return nil, dialError(address, err)
	}
	l := n.listener(name, port)
	if h.dead || l == nil || len(l.waiting) >= backlog {
		return nil, dialError(address, syscall.ECONNREFUSED)
	}
	h.port++
	near, far := connect(h, addr{h.name, h.port}, l.host, l.at)
	l.waiting = append(l.waiting, far)
	l.bell.ring()
	return near, nil
}

func (n *Net) listener(name string, port int) *listener {
	if h := n.hosts[name]; h != nil {
		return h.listeners[port]
	}
	return nil
}

// An addr is where something listens, or what is connected to it.
type addr struct {
	host string
	port int
}

func (a addr) Network() string { return "tcp" }
func (a addr) String() string  { return net.JoinHostPort(a.host, strconv.Itoa(a.port)) }

func split(address string) (string, int, error) {
	name, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return "", 0, fmt.Errorf("the port of %s is not a number", address)
	}
	return name, port, nil
}

func dialError(address string, err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: named(address), Err: err}
}

type named string

func (named) Network() string  { return "tcp" }
func (a named) String() string { return string(a) }

// A bell wakes those who wait for something. It is under the network's lock.
type bell struct {
	rung chan struct{} // nil if nobody waits
}

func (b *bell) ring() {
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

// wait gives the lock away until the bell is rung, a time has come, or done is closed.
// A zero time never comes. It may return for no reason.
func (b *bell) wait(n *Net, done <-chan struct{}, until time.Time) {
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	rung := b.rung
	n.mu.Unlock()
	defer n.mu.Lock()
	var alarm <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-rung:
	case <-alarm:
	case <-done:
	}
}

// all rings every bell of the network: what goes through has changed.
func (n *Net) all() {
	n.dialing.ring()
	for _, h := range n.hosts {
		for _, l := range h.listeners {
			l.bell.ring()
		}
		for c := range h.conns {
			c.bell.ring()
		}
	}
}
