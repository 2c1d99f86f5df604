package connlimit

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/secure"
)

// A Listener accepts connections that have begun to speak. Its methods may be called from
// many goroutines at once.
type Listener struct {
	inner  net.Listener
	cfg    Config
	polite bool       // those that speak may go on when the listener is closed
	spoken chan *conn // those that may be accepted

	closing sync.Once
	done    chan struct{} // closed when nobody is let in any more
	failure error         // why, if nobody asked for it; read after done
	wake    chan struct{} // has one if the sweeper is to look
	running sync.WaitGroup

	mu         sync.Mutex
	shut       bool
	open       int
	hosts      map[netip.Prefix]int
	identities map[secure.Identity]int
	waiting    list.List      // of *conn, the oldest first
	strangers  list.List      // those of them that have said all but who they are
	dropped    map[Reason]int // since the log has heard of it
	paces      paces
}

// New puts a gate before a listener, which it closes when it is closed. Connections that
// are accepted from it must introduce themselves by way of [Credentials], or are closed.
func New(listener net.Listener, cfg Config) *Listener { return open(listener, cfg, false) }

func open(listener net.Listener, cfg Config, polite bool) *Listener {
	cfg.fill()
	l := &Listener{
		inner: listener, cfg: cfg, polite: polite, spoken: make(chan *conn),
		done: make(chan struct{}), wake: make(chan struct{}, 1), hosts: make(map[netip.Prefix]int),
		identities: make(map[secure.Identity]int), dropped: make(map[Reason]int),
		paces: newPaces(cfg.Pace),
	}
	l.running.Go(l.receive)
	l.running.Go(l.sweep)
	return l
}

// Accept returns the next connection that has begun to speak. It never waits for one that
// does not while there are others.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.spoken:
		return c, nil
	case <-l.done:
		if l.failure != nil {
			return nil, l.failure
		}
		return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Addr returns the address that is listened on.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Close closes the listener, and all connections that have not introduced themselves:
// there will be nobody to do so to. The others are the server's. It waits for what New
// started.
func (l *Listener) Close() error {
	err := l.inner.Close()
	l.end(nil)
	l.running.Wait()
	return err
}

func (l *Listener) end(why error) {
	l.closing.Do(func() {
		l.failure = why
		l.mu.Lock()
		l.shut = true
		var over []*conn
		for e := l.waiting.Front(); e != nil; e = e.Next() {
			if c := e.Value.(*conn); !l.polite || !c.speaks {
				over = append(over, c)
			}
		}
		l.mu.Unlock()
		close(l.done)
		for _, c := range over {
			_ = c.Close() // nobody has heard of it
		}
	})
}

func (l *Listener) receive() {
	const least, most = 5 * time.Millisecond, time.Second
	pause := least
	for {
		inner, err := l.inner.Accept()
		if err == nil {
			l.admit(inner)
			pause = least
			continue
		}
		if !passing(err) {
			l.end(err)
			return
		}
		l.evict(Crowded, l.oldest)
		select {
		case <-l.done:
			return
		case <-time.After(pause):
			pause = min(2*pause, most)
		}
	}
}

// passing reports whether to try again: the process has as many files open as it may, or
// the peer has gone meanwhile. The method is deprecated because it means little elsewhere;
// of listeners it is what gRPC and http ask, too.
func passing(err error) bool {
	temporary, ok := err.(interface{ Temporary() bool })
	return ok && temporary.Temporary()
}

// meet waits for the first bytes of a connection, and lets it through to the server.
func (l *Listener) meet(c *conn) {
	if c.hear() != nil {
		_ = c.Close() // it has gone, or its time is up
		return
	}
	l.mu.Lock()
	c.speaks = true
	l.mu.Unlock()
	if !l.turn(c) {
		_ = c.Close() // it is too fast, or nobody accepts it any more
		return
	}
	select {
	case l.spoken <- c:
	case <-l.done:
		_ = c.Close() // nobody accepts it any more
	}
}
