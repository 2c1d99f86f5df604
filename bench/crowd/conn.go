package crowd

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// HTTP/2 (RFC 9113), as much of it as a client of one manager needs.
const (
	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

	frameData     = 0x0
	frameHeaders  = 0x1
	frameReset    = 0x3
	frameSettings = 0x4
	framePing     = 0x6
	frameGoAway   = 0x7
	frameWindow   = 0x8

	flagEndStream  = 0x1
	flagAck        = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8

	settingPush   = 0x2
	settingWindow = 0x4

	// streamWindow is how much a manager may send on a stream before it must be
	// told that there is room again. Connections have as much for each stream.
	streamWindow = 1 << 20
	frameHeader  = 9
	maxFrame     = 1 << 14
	// readBuffer holds the usual answers.
	readBuffer = 512
)

// traffic counts the bytes of all connections, without what TCP adds.
type traffic struct {
	in, out atomic.Int64
	peak    atomic.Int64 // the most in one second, since it was last asked
}

// watch finds the peak, for as long as the process lives.
func (t *traffic) watch() {
	last := int64(0)
	for range time.Tick(time.Second) {
		now := t.in.Load() + t.out.Load()
		t.peak.Store(max(t.peak.Load(), now-last))
		last = now
	}
}

// A conn is a connection with some streams, all of the same method. What it
// sends is far less than what HTTP/2 lets it send unasked, so it does not count.
type conn struct {
	net       net.Conn
	traffic   *traffic
	listeners []listener // of the streams

	mu  sync.Mutex // guards what is written
	out []byte
}

// dial connects from an address of the loopback, and opens streams.
func dial(to string, from net.IP, path string, t *traffic, listeners []listener) (*conn, error) {
	streams := len(listeners)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
	c, err := dialer.Dial("tcp", to)
	if err != nil {
		return nil, err
	}
	out := &conn{net: c, traffic: t, listeners: listeners}
	out.out = append(out.out, preface...)
	out.frame(frameSettings, 0, 0, settings())
	out.frame(frameWindow, 0, 0, binary.BigEndian.AppendUint32(nil, uint32(streams*streamWindow)))
	for i := range streams {
		out.frame(frameHeaders, flagEndHeaders, streamID(i), headers(to, path))
	}
	if err = out.flush(); err != nil {
		_ = c.Close()
		return nil, err
	}
	return out, nil
}

func streamID(i int) uint32 { return uint32(2*i + 1) }

func settings() []byte {
	b := binary.BigEndian.AppendUint16(nil, settingPush)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint16(b, settingWindow)
	return binary.BigEndian.AppendUint32(b, streamWindow)
}

// headers are those of a gRPC call, each a literal that nobody remembers.
func headers(authority, path string) []byte {
	var b []byte
	for _, h := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", path},
		{":authority", authority},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	} {
		b = append(b, 0x10, byte(len(h[0])))
		b = append(b, h[0]...)
		b = append(b, byte(len(h[1])))
		b = append(b, h[1]...)
	}
	return b
}

// frame adds a frame to what is written next. The lock is held, or nobody else
// knows the connection.
func (c *conn) frame(kind, flags byte, stream uint32, payload []byte) {
	n := len(payload)
	c.out = append(c.out, byte(n>>16), byte(n>>8), byte(n), kind, flags)
	c.out = binary.BigEndian.AppendUint32(c.out, stream)
	c.out = append(c.out, payload...)
}

// flush writes what there is.
func (c *conn) flush() error {
	n, err := c.net.Write(c.out)
	c.traffic.out.Add(int64(n))
	c.out = nil // most of the time there is nothing to write: it need not wait with us
	return err
}

// send sends a message on a stream.
func (c *conn) send(stream int, message []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	prefixed := make([]byte, prefix, prefix+len(message))
	binary.BigEndian.PutUint32(prefixed[1:], uint32(len(message)))
	prefixed = append(prefixed, message...)
	for rest := prefixed; len(rest) > 0; {
		n := min(len(rest), maxFrame)
		c.frame(frameData, 0, streamID(stream), rest[:n])
		rest = rest[n:]
	}
	return c.flush()
}

// Write counts what is read.
func (t *traffic) Write(b []byte) (int, error) { t.in.Add(int64(len(b))); return len(b), nil }

// A reading is a connection being read.
type reading struct {
	*conn
	from  *bufio.Reader
	taken []uint32 // since the manager was last told that there is room, by stream
	all   uint32   // the same, of all streams
}

// read reads until the connection or one of its streams ends, and returns why.
func (c *conn) read() error {
	r := &reading{
		conn: c, from: bufio.NewReaderSize(io.TeeReader(c.net, c.traffic), readBuffer),
		taken: make([]uint32, len(c.listeners)),
	}
	var head [frameHeader]byte
	for {
		if _, err := io.ReadFull(r.from, head[:]); err != nil {
			return err
		}
		length := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
		if length > maxFrame {
			return fmt.Errorf("a frame of %d bytes", length)
		}
		if err := r.take(head[3], head[4], binary.BigEndian.Uint32(head[5:]), length); err != nil {
			return err
		}
	}
}

// buffers are for frames and for messages, which are rarely long.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, maxFrame); return &b }}

func (r *reading) take(kind, flags byte, id uint32, length int) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	payload := (*buf)[:length]
	if _, err := io.ReadFull(r.from, payload); err != nil {
		return err
	}
	switch kind {
	case frameData:
		return r.data(flags, int(id/2), payload)
	case frameHeaders:
		if flags&flagEndStream != 0 {
			return errors.New("the manager has ended a stream")
		}
	case frameReset:
		return errors.New("the manager has reset a stream")
	case frameGoAway:
		return errors.New("the manager has ended the connection")
	case frameSettings, framePing:
		if flags&flagAck == 0 {
			return r.acknowledge(kind, payload)
		}
	}
	return nil
}

// acknowledge answers settings, which change nothing for us, and pings.
func (r *reading) acknowledge(kind byte, payload []byte) error {
	if kind == frameSettings {
		payload = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frame(kind, flagAck, 0, payload)
	return r.flush()
}

// data takes a part of what is said on a stream.
func (r *reading) data(flags byte, stream int, payload []byte) error {
	if stream >= len(r.listeners) || flags&flagPadded != 0 {
		return fmt.Errorf("data of stream %d with flags %x", stream, flags)
	}
	r.taken[stream] += uint32(len(payload))
	r.all += uint32(len(payload))
	if r.taken[stream] > streamWindow/2 {
		if err := r.makeRoom(stream); err != nil {
			return err
		}
	}
	r.listeners[stream].take(payload)
	return nil
}

// A listener takes what is said on a stream, as it comes. What it is given is not its own.
type listener interface{ take(part []byte) }

// An assembler hears whole messages. They are short.
type assembler struct {
	hear    func(message []byte)
	partial []byte
}

func (a *assembler) take(part []byte) {
	a.partial = append(a.partial, part...)
	for {
		message, rest, whole := cutMessage(a.partial)
		if !whole {
			break
		}
		a.hear(message)
		a.partial = rest
	}
	if len(a.partial) == 0 {
		a.partial = nil // most of the time there is none
	}
}

// cutMessage cuts off the first message of gRPC's.
func cutMessage(b []byte) (message, rest []byte, whole bool) {
	if len(b) < prefix {
		return nil, b, false
	}
	n := int(binary.BigEndian.Uint32(b[1:]))
	if len(b) < prefix+n {
		return nil, b, false
	}
	return b[prefix : prefix+n], b[prefix+n:], true
}

// makeRoom lets the manager send more.
func (r *reading) makeRoom(stream int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frame(frameWindow, 0, streamID(stream), binary.BigEndian.AppendUint32(nil, r.taken[stream]))
	r.frame(frameWindow, 0, 0, binary.BigEndian.AppendUint32(nil, r.all))
	r.taken[stream], r.all = 0, 0
	return r.flush()
}
