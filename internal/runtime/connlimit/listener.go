package connlimit

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/secure"
)

// A Listener accepts connections whose first bytes have arrived. It is safe for concurrent use.
type Listener struct {
	inner net.Listener
	cfg   Config
	// keepReadable: Close keeps pending connections that have sent data.
	keepReadable bool
	ready        chan *conn // for Accept

	closing sync.Once
	done    chan struct{} // closed when the listener is
	err     error         // of the inner listener, nil after Close; read after done
	wake    chan struct{} // of the sweeper; capacity 1
	running sync.WaitGroup

	mu         sync.Mutex
	closed     bool
	conns      int
	hosts      map[netip.Prefix]int
	identities map[secure.Identity]int
	pending    list.List      // of *conn, oldest first
	anonymous  list.List      // the pending ones whose handshake is complete, oldest first
	dropped    map[Reason]int // since the last report
	handshakes hostLimiters
}

// New returns a Listener around another, which it owns: closing it closes both. Accepted connections must
// complete their handshake with [Credentials] or [Callers], or are closed.
func New(listener net.Listener, cfg Config) *Listener { return open(listener, cfg, false) }

func open(listener net.Listener, cfg Config, keepReadable bool) *Listener {
	cfg.fill()
	l := &Listener{
		inner: listener, cfg: cfg, keepReadable: keepReadable, ready: make(chan *conn),
		done: make(chan struct{}), wake: make(chan struct{}, 1), hosts: make(map[netip.Prefix]int),
		identities: make(map[secure.Identity]int), dropped: make(map[Reason]int),
		handshakes: newHostLimiters(cfg.Pace),
	}
	l.running.Go(l.receive)
	l.running.Go(l.sweep)
	return l
}

// Accept returns the next connection whose first bytes have arrived. Connections without data do not
// delay it.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.done:
		if l.err != nil {
			return nil, l.err
		}
		return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Addr returns the address of the listener.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Close closes the listener and all pending connections. Established connections belong to the server and
// stay open. Close waits for the goroutines of the listener.
func (l *Listener) Close() error {
	err := l.inner.Close()
	l.shutDown(nil)
	l.running.Wait()
	return err
}

func (l *Listener) shutDown(err error) {
	l.closing.Do(func() {
		l.err = err
		l.mu.Lock()
		l.closed = true
		var abandoned []*conn
		for e := l.pending.Front(); e != nil; e = e.Next() {
			if c := e.Value.(*conn); !l.keepReadable || !c.readable {
				abandoned = append(abandoned, c)
			}
		}
		l.mu.Unlock()
		close(l.done)
		for _, c := range abandoned {
			_ = c.Close() // it is pending: no data is lost
		}
	})
}

func (l *Listener) receive() {
	const minBackoff, maxBackoff = 5 * time.Millisecond, time.Second
	backoff := minBackoff
	for {
		inner, err := l.inner.Accept()
		if err == nil {
			l.admit(inner)
			backoff = minBackoff
			continue
		}
		if !temporary(err) {
			l.shutDown(err)
			return
		}
		l.evict(Crowded, l.oldest)
		select {
		case <-l.done:
			return
		case <-time.After(backoff):
			backoff = min(2*backoff, maxBackoff)
		}
	}
}

// temporary reports whether to retry an accept: the process is out of file descriptors, or the
// peer has closed the connection. Temporary is deprecated because it is ill-defined for other errors; gRPC
// and net/http use it for accepts, too.
func temporary(err error) bool {
	e, ok := err.(interface{ Temporary() bool })
	return ok && e.Temporary()
}

// awaitFirstBytes waits for the first bytes of a connection and for the handshake rate of its
// host, then passes the connection to Accept.
func (l *Listener) awaitFirstBytes(c *conn) {
	if c.readFirstBytes() != nil {
		_ = c.Close() // closed by the peer, or expired
		return
	}
	l.mu.Lock()
	c.readable = true
	l.mu.Unlock()
	if !l.awaitHandshake(c) {
		_ = c.Close() // rate exceeded, or the listener is closed
		return
	}
	select {
	case l.ready <- c:
	case <-l.done:
		_ = c.Close() // the listener is closed
	}
}
