package memnet

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// window is the maximum number of bytes in flight per direction.
const window = 256 << 10

// A flow is one direction of a connection. It is guarded by the network's mutex.
type flow struct {
	from, to       *Host
	chunks         []chunk
	size           int       // of all chunks
	last           time.Time // arrival of the newest chunk
	ended          bool      // the writer has closed it
	endsAt         time.Time // when the reader can see that
	reset          bool      // data in flight is lost
	readerClosed   bool      // the reader has closed it
	readerClosedAt time.Time // when the writer can see that
}

type chunk struct {
	arrives time.Time
	data    []byte
}

// open reports whether data is delivered: the reader is not frozen and there is no cut.
func (f *flow) open() bool { return !f.to.frozen && !f.to.net.cuts[[2]string{f.from.name, f.to.name}] }

type conn struct {
	host        *Host
	local, peer addr
	in, out     *flow
	other       *conn // the other end

	closed          bool
	readBy, writeBy time.Time // deadlines
	notifier        notifier
}

// connect returns both ends of a new connection. The mutex is held.
func connect(a *Host, at addr, b *Host, bt addr) (near, far *conn) {
	there, back := &flow{from: a, to: b}, &flow{from: b, to: a}
	near = &conn{host: a, local: at, peer: bt, in: back, out: there}
	far = &conn{host: b, local: bt, peer: at, in: there, out: back}
	near.other, far.other = far, near
	a.conns[near], b.conns[far] = true, true
	return near, far
}

// finish ends a flow after all written data. The mutex is held.
func (f *flow) finish() {
	if !f.ended {
		f.ended, f.endsAt = true, f.arrival()
	}
}

// arrival returns the arrival time of data sent now, which is not before that of earlier data.
func (f *flow) arrival() time.Time {
	at := time.Now().Add(f.from.net.latency)
	if delay := f.from.net.Delay; delay != nil {
		at = at.Add(delay(f.from.name, f.to.name))
	}
	if at.Before(f.last) {
		at = f.last
	}
	f.last = at
	return at
}

// reset closes a connection with a reset. The mutex is held.
func (c *conn) reset() {
	c.out.reset, c.out.chunks, c.out.size = true, nil, 0
	c.out.ended, c.out.endsAt = true, c.out.arrival() // also after finish
	c.end()
}

// end closes this end. The mutex is held.
func (c *conn) end() {
	if c.closed {
		return
	}
	c.closed = true
	c.out.finish()
	c.in.readerClosed, c.in.readerClosedAt, c.in.chunks, c.in.size = true, c.out.arrival(), nil, 0
	delete(c.host.conns, c)
	c.notifier.notify()
	c.other.notifier.notify()
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
				c.other.notifier.notify() // there is space in the window
				return c.in.take(p), nil
			}
			until = sooner(until, at)
		case c.in.ended && !c.in.from.frozen:
			if !now.Before(c.in.endsAt) {
				if c.in.reset {
					return 0, c.failure("read", syscall.ECONNRESET)
				}
				return 0, io.EOF
			}
			until = sooner(until, c.in.endsAt)
		}
		if len(p) == 0 {
			return 0, nil
		}
		c.notifier.wait(n, nil, until)
	}
}

// sooner returns the earlier of two times. A zero time is infinite.
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
		until, now := c.writeBy, time.Now()
		visible := !now.Before(c.out.readerClosedAt)
		switch {
		case c.closed || c.out.ended:
			return sent, c.failure("write", net.ErrClosed)
		case !c.writeBy.IsZero() && !now.Before(c.writeBy):
			return sent, c.failure("write", os.ErrDeadlineExceeded)
		case c.host.frozen:
		case c.out.readerClosed && visible && c.out.open():
			return sent, c.failure("write", syscall.EPIPE)
		default:
			sent += c.out.put(p[sent:])
			c.other.notifier.notify()
			if sent == len(p) {
				return sent, nil
			}
			if c.out.readerClosed && !visible {
				until = sooner(until, c.out.readerClosedAt)
			}
		}
		c.notifier.wait(n, nil, until)
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

// Close closes the connection. Written data is still delivered.
func (c *conn) Close() error {
	c.do(c.end)
	return nil
}

// do changes the connection and wakes both ends.
func (c *conn) do(change func()) {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	change()
	c.notifier.notify()
	c.other.notifier.notify()
}

func (c *conn) failure(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.peer, Err: err}
}

func (c *conn) LocalAddr() net.Addr { return c.local }

func (c *conn) RemoteAddr() net.Addr { return c.peer }

func (c *conn) SetDeadline(t time.Time) error {
	c.do(func() { c.readBy, c.writeBy = t, t })
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.do(func() { c.readBy = t })
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.do(func() { c.writeBy = t })
	return nil
}
