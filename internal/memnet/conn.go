package memnet

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// window is how many bytes may be under way in one direction.
const window = 256 << 10

// A flow is one direction of a connection. It is under the network's lock.
type flow struct {
	from, to *Host
	chunks   []chunk
	size     int  // of the chunks
	ended    bool // nothing more is written
	reset    bool // and what was under way is lost
	deaf     bool // nobody reads
}

// A chunk is what was written at once.
type chunk struct {
	arrives time.Time
	data    []byte
}

// open reports whether what is under way arrives.
func (f *flow) open() bool { return !f.to.frozen && !f.to.net.cuts[link(f.from.name, f.to.name)] }

// A conn is one end of a connection.
type conn struct {
	host        *Host
	local, peer addr
	in, out     *flow
	other       *conn // the other end

	closed       bool
	readBy, till time.Time // deadlines, of reading and of writing
	bell         bell
}

// connect makes both ends of a connection. The lock is held.
func connect(a *Host, at addr, b *Host, bt addr) (near, far *conn) {
	there, back := &flow{from: a, to: b}, &flow{from: b, to: a}
	near = &conn{host: a, local: at, peer: bt, in: back, out: there}
	far = &conn{host: b, local: bt, peer: at, in: there, out: back}
	near.other, far.other = far, near
	a.conns[near], b.conns[far] = true, true
	return near, far
}

// reset ends a connection without further words. The lock is held.
func (c *conn) reset() {
	c.out.reset, c.out.chunks, c.out.size = true, nil, 0
	c.end()
}

// end closes this end. The lock is held.
func (c *conn) end() {
	c.closed = true
	c.out.ended = true
	c.in.deaf, c.in.chunks, c.in.size = true, nil, 0
	delete(c.host.conns, c)
	c.bell.ring()
	c.other.bell.ring()
}

// Read returns what has arrived.
func (c *conn) Read(p []byte) (int, error) {
	n := c.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		until, now := c.readBy, time.Now()
		switch {
		case c.closed:
			return 0, c.failure("read", net.ErrClosed)
		case !c.readBy.IsZero() && !now.Before(c.readBy):
			return 0, c.failure("read", os.ErrDeadlineExceeded)
		case !c.in.open():
		case c.in.reset:
			return 0, c.failure("read", syscall.ECONNRESET)
		case len(c.in.chunks) > 0:
			at := c.in.chunks[0].arrives
			if !now.Before(at) {
				c.other.bell.ring() // there is room
				return c.in.take(p), nil
			}
			if until.IsZero() || at.Before(until) {
				until = at
			}
		case c.in.ended && !c.in.from.frozen:
			return 0, io.EOF
		}
		if len(p) == 0 {
			return 0, nil
		}
		c.bell.wait(n, nil, until)
	}
}

// take takes bytes out that have arrived.
func (f *flow) take(p []byte) int {
	first := &f.chunks[0]
	count := copy(p, first.data)
	if first.data = first.data[count:]; len(first.data) == 0 {
		f.chunks = f.chunks[1:]
	}
	f.size -= count
	return count
}

// Write sends, and waits while too much is under way.
func (c *conn) Write(p []byte) (int, error) {
	n := c.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for sent := 0; ; {
		switch {
		case c.closed || c.out.ended:
			return sent, c.failure("write", net.ErrClosed)
		case !c.till.IsZero() && !time.Now().Before(c.till):
			return sent, c.failure("write", os.ErrDeadlineExceeded)
		case c.host.frozen:
		case c.out.deaf && c.out.open():
			return sent, c.failure("write", syscall.EPIPE)
		default:
			sent += c.out.put(p[sent:], n.latency)
			c.other.bell.ring()
			if sent == len(p) {
				return sent, nil
			}
		}
		c.bell.wait(n, nil, c.till)
	}
}

// put takes in as much as there is room for.
func (f *flow) put(p []byte, latency time.Duration) int {
	count := min(len(p), window-f.size)
	if count == 0 {
		return 0
	}
	f.chunks = append(f.chunks, chunk{time.Now().Add(latency), append([]byte(nil), p[:count]...)})
	f.size += count
	return count
}

// CloseWrite says that nothing more comes.
func (c *conn) CloseWrite() error {
	c.do(func() { c.out.ended = true })
	return nil
}

// Close ends the connection. What was written still arrives.
func (c *conn) Close() error {
	c.do(c.end)
	return nil
}

// do changes something that both ends may wait for.
func (c *conn) do(change func()) {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	change()
	c.bell.ring()
	c.other.bell.ring()
}

func (c *conn) failure(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.peer, Err: err}
}

// LocalAddr returns this end's address.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the other end's address.
func (c *conn) RemoteAddr() net.Addr { return c.peer }

// SetDeadline sets until when reading and writing may wait.
func (c *conn) SetDeadline(t time.Time) error {
	c.do(func() { c.readBy, c.till = t, t })
	return nil
}

// SetReadDeadline sets until when reading may wait.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.do(func() { c.readBy = t })
	return nil
}

// SetWriteDeadline sets until when writing may wait.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.do(func() { c.till = t })
	return nil
}
