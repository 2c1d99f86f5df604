package memnet

import (
	"fmt"
	"net"
	"syscall"
	"time"
)

// backlog is the maximum number of connections that wait for Accept; more are refused.
const backlog = 1024

type listener struct {
	host *Host
	at   addr

	// Guarded by the network's mutex.
	waiting  []*conn
	closed   bool
	notifier notifier
}

// Listen listens on a port of the host; 0 chooses a free one.
func (h *Host) Listen(port int) (net.Listener, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if port == 0 {
		for port = 10000; h.listeners[port] != nil; port++ {
			continue
		}
	}
	switch {
	case port < 0 || port > 65535:
		return nil, fmt.Errorf("listen on %s: port %d is not between 0 and 65535", h.name, port)
	case h.dead:
		return nil, fmt.Errorf("listen on %s: the host was killed", h.name)
	case h.listeners[port] != nil:
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: addr{h.name, port}, Err: syscall.EADDRINUSE}
	}
	l := &listener{host: h, at: addr{h.name, port}}
	h.listeners[port] = l
	return l, nil
}

func (l *listener) Accept() (net.Conn, error) {
	n := l.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		switch {
		case l.closed:
			return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.at, Err: net.ErrClosed}
		case len(l.waiting) > 0 && !l.host.frozen:
			c := l.waiting[0]
			l.waiting = l.waiting[1:]
			return c, nil
		}
		l.notifier.wait(n, nil, time.Time{})
	}
}

// Close closes the listener and resets connections that were not accepted.
func (l *listener) Close() error {
	n := l.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	l.end()
	return nil
}

// end closes the listener. The mutex is held.
func (l *listener) end() {
	if l.host.listeners[l.at.port] == l {
		delete(l.host.listeners, l.at.port)
	}
	l.closed = true
	for _, c := range l.waiting {
		c.reset()
	}
	l.waiting = nil
	l.notifier.notify()
}

func (l *listener) Addr() net.Addr { return l.at }
