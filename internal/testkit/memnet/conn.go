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
	size     int       // of the chunks
	ended    bool      // nothing more is written
	ends     time.Time // when the reader may hear of that
	reset    bool      // and what was under way is lost
	deaf     bool      // nobody reads
	told     time.Time // when the writer may hear of that
}

type chunk struct {
	arrives time.Time
	data    []byte
}

// open reports whether what is under way arrives.
func (f *flow) open() bool { return !f.to.frozen && !f.to.net.cuts[link(f.from.name, f.to.name)] }

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

// finish says that nothing more is written, after all that was. The lock is held.
func (f *flow) finish() {
	if !f.ended {
		f.ended, f.ends = true, f.arrival()
	}
}

// arrival is when something arrives that is sent now.
func (f *flow) arrival() time.Time { return time.Now().Add(f.from.net.latency) }

// reset ends a connection without further words. The lock is held.
func (c *conn) reset() {
	c.out.reset, c.out.chunks, c.out.size = true, nil, 0
	c.out.ended, c.out.ends = true, c.out.arrival() // though it was finished before
	c.end()
}

// end closes this end. The lock is held.
func (c *conn) end() {
	if c.closed {
		return
	}
	c.closed = true
	c.out.finish()
	c.in.deaf, c.in.told, c.in.chunks, c.in.size = true, c.out.arrival(), nil, 0
	delete(c.host.conns, c)
	c.bell.ring()
	c.other.bell.ring()
}

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
		case len(c.in.chunks) > 0:
			at := c.in.chunks[0].arrives
			if !now.Before(at) {
				c.other.bell.ring() // there is room
				return c.in.take(p), nil
			}
			until = sooner(until, at)
		case c.in.ended && !c.in.from.frozen:
			if !now.Before(c.in.ends) {
				if c.in.reset {
					return 0, c.failure("read", syscall.ECONNRESET)
				}
				return 0, io.EOF
			}
			until = sooner(until, c.in.ends)
		}
		if len(p) == 0 {
			return 0, nil
		}
		c.bell.wait(n, nil, until)
	}
}

// sooner returns the earlier of two times. A zero time never comes.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func (f *flow) take(p []byte) int {
	first := &f.chunks[0]
	count := copy(p, first.data)
	if first.data = first.data[count:]; len(first.data) == 0 {
		f.chunks = f.chunks[1:]
	}
	f.size -= count
	return count
}

func (c *conn) Write(p []byte) (int, error) {
	n := c.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for sent := 0; ; {
		until, now := c.till, time.Now()
		heard := !now.Before(c.out.told)
		switch {
		case c.closed || c.out.ended:
			return sent, c.failure("write", net.ErrClosed)
		case !c.till.IsZero() && !now.Before(c.till):
			return sent, c.failure("write", os.ErrDeadlineExceeded)
		case c.host.frozen:
		case c.out.deaf && heard && c.out.open():
			return sent, c.failure("write", syscall.EPIPE)
		default:
			sent += c.out.put(p[sent:])
			c.other.bell.ring()
			if sent == len(p) {
				return sent, nil
			}
			if c.out.deaf && !heard {
				until = sooner(until, c.out.told)
			}
		}
		c.bell.wait(n, nil, until)
	}
}

func (f *flow) put(p []byte) int {
	count := min(len(p), window-f.size)
	if count == 0 {
		return 0
	}
	f.chunks = append(f.chunks, chunk{f.arrival(), append([]byte(nil), p[:count]...)})
	f.size += count
	return count
}

func (c *conn) CloseWrite() error {
	c.do(c.out.finish)
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

func (c *conn) LocalAddr() net.Addr { return c.local }

func (c *conn) RemoteAddr() net.Addr { return c.peer }

func (c *conn) SetDeadline(t time.Time) error {
	c.do(func() { c.readBy, c.till = t, t })
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.do(func() { c.readBy = t })
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.do(func() { c.till = t })
	return nil
}
