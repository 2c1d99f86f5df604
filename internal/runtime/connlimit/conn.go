package connlimit

import (
	"container/list"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/secure"
)

// firstBytes is how much is read of a connection to see that it speaks. It is no more
// than the shortest introduction: nothing is to be kept for one that says more at once.
const firstBytes = 24

// A conn is a connection that has come through the gate, or is about to.
type conn struct {
	net.Conn
	gate  *Listener
	host  netip.Prefix
	until time.Time // when it must have introduced itself

	// Under the gate's lock.
	place    *list.Element // among those that wait; nil if it does not
	strange  *list.Element // among those of them that nobody knows; nil if it is not
	identity secure.Identity
	counted  bool
	speaks   bool
	shut     bool
	calls    *pace // while its identity makes too many; nil if it never has
	refused  *pace // of calls that were refused; nil if none was

	gone chan struct{} // closed when it is
	rest rest

	left    atomic.Int32 // how many of the first bytes have not been read
	reading sync.Mutex   // for the first bytes
	heard   int
	first   [firstBytes]byte
}

func (c *conn) hear() error {
	n, err := c.Conn.Read(c.first[:])
	if n == 0 {
		return err // if there is none, it was read without a byte: gone is as good
	}
	c.heard = n
	c.left.Store(int32(n))
	return nil
}

// Read returns the first bytes first. It waits while the connection rests.
func (c *conn) Read(p []byte) (int, error) {
	if c.rest.due() {
		if err := c.rest.take(c.gone); err != nil {
			return 0, err
		}
	}
	if c.left.Load() == 0 {
		return c.Conn.Read(p)
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	left := int(c.left.Load())
	if left == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.first[c.heard-left:c.heard])
	c.left.Store(int32(left - n))
	return n, nil
}

// Close closes the connection, and gives its place to another.
func (c *conn) Close() error {
	c.gate.mu.Lock()
	c.gate.forget(c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite says that nothing more comes. http does so before it closes a connection
// whose request it has not read to the end: the answer would be lost otherwise.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// introduce says that whoever is behind a connection has introduced itself. One that is
// none of ours is let alone.
func introduce(over net.Conn) {
	if c := ours(over); c != nil {
		c.gate.mu.Lock()
		c.gate.introduced(c)
		c.gate.mu.Unlock()
	}
}

// ours returns the connection of ours that is below another, such as TLS; nil if there is
// none.
func ours(over net.Conn) *conn {
	for {
		switch c := over.(type) {
		case *conn:
			return c
		case interface{ NetConn() net.Conn }:
			over = c.NetConn()
		default:
			return nil
		}
	}
}
