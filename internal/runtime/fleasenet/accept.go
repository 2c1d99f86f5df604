package fleasenet

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// accept takes in connections, up to a bound, until the listener is closed.
func (s *streams) accept() {
	for {
		conn, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			if !pause(s.ctx, readPause) {
				return
			}
		case !s.admit(conn):
			_ = conn.Close()
		default:
			s.running.Go(func() { s.serve(conn) })
		}
	}
}

// admit notes a connection, so that Close finds it. There may be too many
// already, and it may be too late.
func (s *streams) admit(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	if len(s.incoming) >= 2*len(s.lines)+strangers {
		s.refused.Add(1)
		return false
	}
	s.incoming[conn] = true
	return true
}

// serve reads packets from a connection until it ends, is idle for too long, or
// sends what no peer would send.
func (s *streams) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		s.mu.Lock()
		delete(s.incoming, conn)
		s.mu.Unlock()
	}()
	_ = conn.SetDeadline(time.Now().Add(helloWait))
	if s.config.TLS != nil {
		over := tls.Server(conn, s.config.TLS)
		if err := over.HandshakeContext(s.ctx); err != nil {
			s.config.Logger.Info("refused a connection", "from", conn.RemoteAddr(), "err", err)
			return
		}
		conn = over
	}
	s.read(conn, 2*(MaxPacket+lengthSize), s.wayBack(conn), func(why fate) bool {
		if why == delivered || why == strange {
			_ = conn.SetReadDeadline(time.Now().Add(closeAfter))
			return true
		}
		return why == replayed // by an old connection and a new one
	})
}

// hear reads answers that come back on a connection that we have made, until it
// ends. Nothing else comes there.
func (s *streams) hear(conn net.Conn) {
	s.read(conn, MinPacket+lengthSize, func(flease.Process, []byte) {}, func(why fate) bool {
		return why == delivered || why == strange
	})
}

// read reads packets from a connection until it ends, or one of them has a fate that
// is not acceptable.
func (s *streams) read(conn net.Conn, buffer int, back wayBack, acceptable func(fate) bool) {
	in := bufio.NewReaderSize(conn, buffer)
	r := &reader{inbox: s.inbox, back: back, from: conn.RemoteAddr().String}
	defer r.drain()
	for {
		packet := s.next(in, r)
		if packet == nil || !acceptable(r.packet(packet)) {
			return
		}
		_, _ = in.Discard(lengthSize + len(packet))
	}
}

func (s *streams) wayBack(conn net.Conn) wayBack {
	return func(_ flease.Process, packet []byte) {
		frame := binary.LittleEndian.AppendUint32(nil, uint32(len(packet)))
		_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := conn.Write(append(frame, packet...)); err != nil {
			s.drop(failed, 1)
			_ = conn.Close()
		}
	}
}

// next returns the next packet, where it was buffered, and nil if there is none.
func (s *streams) next(in *bufio.Reader, r *reader) []byte {
	length := s.peek(in, lengthSize, r)
	if length == nil {
		return nil
	}
	n := binary.LittleEndian.Uint32(length)
	if n > MaxPacket {
		s.drop(oversized, 1)
		return nil
	}
	frame := s.peek(in, lengthSize+int(n), r)
	if frame == nil {
		return nil
	}
	return frame[lengthSize:]
}

// peek returns the next n bytes. If it must wait for them, the receiver is told
// first. A connection that ends within a packet has lost it.
func (s *streams) peek(in *bufio.Reader, n int, r *reader) []byte {
	if in.Buffered() < n {
		r.drain()
	}
	b, err := in.Peek(n)
	if err != nil {
		if len(b) > 0 {
			s.drop(malformed, 1)
		}
		return nil
	}
	return b
}
