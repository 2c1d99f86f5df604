// Package memnet is an in-memory network: hosts that listen and dial, and can be partitioned, frozen and killed. It
// works with the virtual time of testing/synctest.
//
// A connection behaves like TCP. Data and the end of the stream arrive in order, after the network's latency. Dials
// and refusals take no time. A cut delays data and dials until it is healed. A killed host resets its connections;
// a cut delays that, too. A frozen host neither reads nor writes, like a stopped process.
//
// One mutex guards the whole network, so that all events are ordered.
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

// A Net is a network. It, its hosts and its connections are safe for concurrent use.
type Net struct {
	// Delay, if set, returns an additional delay of data from one host to another. It is called with the
	// network's mutex held, and set before the first connection.
	Delay func(from, to string) time.Duration

	latency time.Duration

	mu      sync.Mutex
	dialing notifier
	hosts   map[string]*Host
	cuts    map[[2]string]bool // by direction
}

// New returns a network without hosts. latency is the delay of all data.
func New(latency time.Duration) *Net {
	return &Net{latency: latency, hosts: make(map[string]*Host), cuts: make(map[[2]string]bool)}
}

// Host returns the host with a name, a new one if there is none or it was killed.
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

// Cut partitions two hosts, by name, in both directions until Heal.
func (n *Net) Cut(a, b string) {
	n.CutOneWay(a, b)
	n.CutOneWay(b, a)
}

// CutOneWay delays data from one host to another until Heal.
func (n *Net) CutOneWay(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts[[2]string{from, to}] = true
	n.notifyAll()
}

// Heal ends the partition of two hosts.
func (n *Net) Heal(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.cuts, [2]string{a, b})
	delete(n.cuts, [2]string{b, a})
	n.notifyAll()
}

// Reset resets all connections between two hosts.
func (n *Net) Reset(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h := n.hosts[a]; h != nil {
		for c := range h.conns {
			if c.peer.host == b {
				c.reset()
				c.other.reset()
			}
		}
	}
}

func (n *Net) cut(a, b string) bool { return n.cuts[[2]string{a, b}] || n.cuts[[2]string{b, a}] }

// HealAll ends all partitions of a host.
func (n *Net) HealAll(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for l := range n.cuts {
		if l[0] == name || l[1] == name {
			delete(n.cuts, l)
		}
	}
	n.notifyAll()
}

// A Host is a computer in a network.
type Host struct {
	net  *Net
	name string

	// Guarded by the network's mutex.
	dead, frozen bool
	listeners    map[int]*listener
	conns        map[*conn]bool
	port         int // of the last outgoing connection
}

// Name returns the host's name, which is its address.
func (h *Host) Name() string { return h.name }

// Freeze stops all reads and writes of the host until Thaw.
func (h *Host) Freeze() { h.set(func() { h.frozen = true }) }

// Thaw ends Freeze.
func (h *Host) Thaw() { h.set(func() { h.frozen = false }) }

// Kill closes all listeners and resets all connections of the host. It cannot be used afterwards.
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
	h.net.notifyAll()
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
	for h.frozen || n.cut(h.name, name) {
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
	l.notifier.notify()
	return near, nil
}

func (n *Net) listener(name string, port int) *listener {
	if h := n.hosts[name]; h != nil {
		return h.listeners[port]
	}
	return nil
}

// An addr is the address of a listener or of an end of a connection.
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

// A notifier wakes waiting goroutines. It is guarded by the network's mutex.
type notifier struct {
	ch chan struct{} // nil if no goroutine waits
}

func (b *notifier) notify() {
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// wait releases the mutex until notify, a time, or done is closed. A zero time is infinite. Spurious wakeups are
// possible.
func (b *notifier) wait(n *Net, done <-chan struct{}, until time.Time) {
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	ch := b.ch
	n.mu.Unlock()
	defer n.mu.Lock()
	var timeout <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-ch:
	case <-timeout:
	case <-done:
	}
}

// notifyAll wakes all goroutines of the network after a change of connectivity.
func (n *Net) notifyAll() {
	n.dialing.notify()
	for _, h := range n.hosts {
		for _, l := range h.listeners {
			l.notifier.notify()
		}
		for c := range h.conns {
			c.notifier.notify()
		}
	}
}
