package loadgen

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// streamWindow is the flow control window of a stream. The window of a connection is
	// as large for each stream.
	streamWindow = 1 << 20
	maxFrame     = 1 << 14
	readBuffer   = 512 // fits a usual reply
	// prefix is the length of gRPC's message header: a flag and a length.
	prefix = 5
)

// Traffic counts the bytes of all connections, without those of TCP.
type Traffic struct {
	in, out atomic.Int64
	peak    atomic.Int64 // the maximum in one second since the last reset
}

// watch updates the peak until the process ends.
func (t *Traffic) watch() {
	last := int64(0)
	for range time.Tick(time.Second) {
		now := t.in.Load() + t.out.Load()
		t.peak.Store(max(t.peak.Load(), now-last))
		last = now
	}
}

// Write counts bytes that were read.
func (t *Traffic) Write(b []byte) (int, error) {
	t.in.Add(int64(len(b)))
	return len(b), nil
}

// A Listener receives the data of a stream as it arrives. It does not retain the slice.
type Listener interface{ Take(part []byte) }

// A Conn is a connection to a gRPC server with streams of one method. It is safe for
// concurrent use, except that one goroutine calls Read. It ignores the server's flow
// control, because it sends far less than the windows allow.
type Conn struct {
	net     net.Conn
	traffic *Traffic
	headers []byte
	framer  *http2.Framer // writes to out, with mu; Read reads

	mu      sync.Mutex // guards the following
	out     bytes.Buffer
	streams []*stream
}

type stream struct {
	listener Listener
	received uint32 // since the last window update; only for Read
}

// perSource is the number of connections per source address, which has a limited number of
// ports.
const perSource = 2000

// Dial connects from the loopback source address for a connection number.
func Dial(to string, number int, method string, traffic *Traffic) (*Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 7, byte(number/perSource), 1)}}
	conn, err := dialer.Dial("tcp", to)
	if err != nil {
		return nil, err
	}
	c := &Conn{net: conn, traffic: traffic, headers: headers(to, method)}
	c.framer = http2.NewFramer(&c.out, bufio.NewReaderSize(io.TeeReader(conn, traffic), readBuffer))
	c.framer.SetReuseFrames()
	c.framer.SetMaxReadFrameSize(maxFrame)
	err = c.write(func() error {
		_, _ = c.out.WriteString(http2.ClientPreface) // it never fails
		return c.framer.WriteSettings(
			http2.Setting{ID: http2.SettingEnablePush, Val: 0}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: streamWindow})
	})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

// headers returns the headers of a gRPC call. All fields are marked sensitive, so that they
// are never indexed and the block is valid on every stream.
func headers(authority, method string) []byte {
	var b bytes.Buffer
	encoder := hpack.NewEncoder(&b)
	for _, h := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", method},
		{":authority", authority},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	} {
		_ = encoder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1], Sensitive: true}) // a buffer never fails
	}
	return b.Bytes()
}

func (c *Conn) write(frames func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := frames(); err != nil {
		return err
	}
	n, err := c.net.Write(c.out.Bytes())
	c.traffic.out.Add(int64(n))
	c.out = bytes.Buffer{} // idle connections keep no buffer
	return err
}

func streamID(i int) uint32 { return uint32(2*i + 1) }

// Open opens a stream and returns its number.
func (c *Conn) Open(l Listener) (number int, err error) {
	err = c.write(func() error {
		number = len(c.streams)
		c.streams = append(c.streams, &stream{listener: l})
		if err := c.framer.WriteWindowUpdate(0, streamWindow); err != nil {
			return err
		}
		return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: streamID(number), BlockFragment: c.headers, EndHeaders: true})
	})
	return number, err
}

// Send sends a message on a stream.
func (c *Conn) Send(number int, message []byte) error {
	data := make([]byte, prefix, prefix+len(message))
	binary.BigEndian.PutUint32(data[1:], uint32(len(message)))
	data = append(data, message...)
	return c.write(func() error {
		for rest := data; len(rest) > 0; {
			n := min(len(rest), maxFrame)
			if err := c.framer.WriteData(streamID(number), false, rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return nil
	})
}

// Read reads until the connection or one of its streams ends, and returns why.
func (c *Conn) Read() error {
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return err
		}
		switch f := frame.(type) {
		case *http2.DataFrame:
			err = c.receive(f)
		case *http2.HeadersFrame:
			if f.StreamEnded() {
				err = errors.New("the server ended a stream")
			}
		case *http2.RSTStreamFrame:
			err = errors.New("the server reset a stream")
		case *http2.GoAwayFrame:
			err = errors.New("the server ended the connection")
		case *http2.SettingsFrame:
			if !f.IsAck() {
				err = c.write(c.framer.WriteSettingsAck)
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				err = c.write(func() error { return c.framer.WritePing(true, f.Data) })
			}
		}
		if err != nil {
			return err
		}
	}
}

// receive passes data to the listener of its stream, and updates the windows.
func (c *Conn) receive(f *http2.DataFrame) error {
	c.mu.Lock()
	number := int(f.StreamID / 2)
	if number >= len(c.streams) {
		c.mu.Unlock()
		return fmt.Errorf("data of stream %d, which is not open", f.StreamID)
	}
	s := c.streams[number]
	c.mu.Unlock()
	s.received += f.Length
	if s.received > streamWindow/2 {
		err := c.write(func() error {
			return errors.Join(c.framer.WriteWindowUpdate(f.StreamID, s.received), c.framer.WriteWindowUpdate(0, s.received))
		})
		if err != nil {
			return err
		}
		s.received = 0
	}
	s.listener.Take(f.Data())
	return nil
}

// Close ends the connection, and with it Read.
func (c *Conn) Close() { _ = c.net.Close() }

// Whole returns a listener that assembles whole messages. It is for short ones.
func Whole(receive func(message []byte)) Listener { return &assembler{receive: receive} }

type assembler struct {
	receive func(message []byte)
	partial []byte
}

func (a *assembler) Take(part []byte) {
	a.partial = append(a.partial, part...)
	for {
		message, rest, whole := cutMessage(a.partial)
		if !whole {
			break
		}
		a.receive(message)
		a.partial = rest
	}
	if len(a.partial) == 0 {
		a.partial = nil // most of the time there is none
	}
}

// cutMessage cuts off the first gRPC message.
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
