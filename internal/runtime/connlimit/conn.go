package connlimit

import (
	"container/list"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/leasehold-dev/leasehold/secure"
)

// firstBytes is the number of bytes that are read of a connection before Accept returns it. It is the
// length of the HTTP/2 preface.
const firstBytes = 24

// A conn is a connection of a Listener.
type conn struct {
	net.Conn
	listener *Listener
	host     netip.Prefix
	deadline time.Time // of the handshake

	// Guarded by the listener's mutex.
	pending   *list.Element // in Listener.pending; nil if established or removed
	anonymous *list.Element // in Listener.anonymous; nil if not in it
	identity  secure.Identity
	counted   bool // in Listener.conns
	readable  bool // the first bytes have arrived
	closed    bool
	calls     *rate.Limiter // of calls beyond the limit of their identity; nil before the first
	refused   *rate.Limiter // of rejected calls; nil before the first

	removed chan struct{} // closed by Listener.remove
	pause   readPause

	unread   atomic.Int32 // number of first bytes that Read has not returned
	reading  sync.Mutex   // guards the first bytes
	firstLen int
	first    [firstBytes]byte
}

// NetConn returns the connection of the inner listener.
func (c *conn) NetConn() net.Conn { return c.Conn }

func (c *conn) readFirstBytes() error {
	n, err := c.Conn.Read(c.first[:])
	if n == 0 {
		return err
	}
	c.firstLen = n
	c.unread.Store(int32(n))
	return nil
}

// Read returns the first bytes, then data of the connection. It blocks during a pause.
func (c *conn) Read(p []byte) (int, error) {
	if c.pause.pending() {
		if err := c.pause.wait(c.removed); err != nil {
			return 0, err
		}
	}
	if c.unread.Load() == 0 {
		return c.Conn.Read(p)
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	left := int(c.unread.Load())
	if left == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.first[c.firstLen-left:c.firstLen])
	c.unread.Store(int32(left - n))
	return n, nil
}

// Close closes the connection and releases its place in the limits.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	c.listener.remove(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite closes the sending direction. net/http calls it before it closes a connection
// with unread request data; the reply would be lost otherwise.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// establish ends the pending state of a connection. It has no effect on connections of other listeners.
func establish(outer net.Conn) {
	if c := connOf(outer); c != nil {
		c.listener.mu.Lock()
		c.listener.markEstablished(c)
		c.listener.mu.Unlock()
	}
}

// connOf returns the conn below another connection, such as TLS, nil if there is none.
func connOf(outer net.Conn) *conn {
	for {
		switch c := outer.(type) {
		case *conn:
			return c
		case interface{ NetConn() net.Conn }:
			outer = c.NetConn()
		default:
			return nil
		}
	}
}
