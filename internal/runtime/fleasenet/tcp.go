package fleasenet

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// lengthSize is the size of the length before each packet. Each process connects to the peers that it sends to, and a
// connection carries packets in that direction. Only replies by Source.Reply go back on it.
const lengthSize = 4

// Limits per peer and per incoming connection.
const (
	// maxQueue is the maximum size of the queue to a peer. If it is full new packets are dropped; the
	// machine retries.
	maxQueue = 1 << 20
	// dialTimeout includes the TLS handshake.
	dialTimeout = 3 * time.Second
	// writeTimeout closes the connection to a peer that does not read.
	writeTimeout = 5 * time.Second
	// idleTimeout is the idle timeout of the accepting side. The connecting side uses half of it, so that it
	// closes first.
	idleTimeout = 60 * time.Second
	// firstPacketTimeout is the maximum time from accept to the first authentic packet.
	firstPacketTimeout = 5 * time.Second
	// extraConns is the maximum number of incoming connections besides two per peer: the current one, and a
	// broken one that is not detected yet.
	extraConns = 16

	// minLifetime is the minimum age of a connection that the other end has accepted. It resets the backoff.
	minLifetime = 2 * time.Second

	minBackoff = 50 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// tcpNet is a network of TCP connections.
type tcpNet struct {
	base
	listener net.Listener
	limit    int
	conns    map[flease.Process]*peerConn
	dirty    []*peerConn // with packets to flush

	mu       sync.Mutex
	incoming map[net.Conn]bool
}

// TCP opens a network of TCP connections, for networks that block datagrams or require TLS. It costs more
// than UDP, and a lost segment delays the packets after it.
func TCP(c Config) (Net, error) {
	if err := errors.Join(c.checkMembers(), c.checkAddresses()); err != nil {
		return nil, err
	}
	if c.TLS != nil && len(c.TLS.Certificates) == 0 && c.TLS.GetCertificate == nil && c.TLS.GetConfigForClient == nil {
		return nil, invalid("", "TLS without a certificate: every member accepts connections and needs one")
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, cannotListen(c.Listen, err)
	}
	s, err := newTCPNet(c, l)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

// newTCPNet owns the listener unless it returns an error.
func newTCPNet(c Config, l net.Listener) (*tcpNet, error) {
	s := &tcpNet{
		listener: l, limit: cmp.Or(c.MaxPacket, MaxPacket),
		conns: make(map[flease.Process]*peerConn), incoming: make(map[net.Conn]bool),
	}
	if err := s.begin(c); err != nil {
		return nil, err
	}
	for _, p := range c.Peers {
		if p.Process != c.Self || canonical(p.Addr) != canonical(s.Addr()) { // not this process
			line := newPeerConn(p, &c, &s.counters, s.readReplies)
			s.conns[p.Process] = line
			s.running.Go(func() { line.run(s.ctx) })
		}
	}
	s.running.Go(s.accept)
	return s, nil
}

func (s *tcpNet) Addr() string { return s.listener.Addr().String() }

func (s *tcpNet) Send(to flease.Process, e *flease.Envelope, msgs []flease.Message) {
	line := s.conns[to]
	if line == nil {
		s.unknown(to)
		return
	}
	if line.gathered.packets == 0 {
		s.dirty = append(s.dirty, line)
	}
	for first := true; first || len(msgs) > 0; first = false {
		if len(line.gathered.bytes) >= maxQueue {
			line.flush()
		}
		msgs = line.gathered.add(s.packer, s.limit, to, e, msgs)
	}
}

func (s *tcpNet) Flush() {
	for i, line := range s.dirty {
		line.flush()
		s.dirty[i] = nil
	}
	s.dirty = s.dirty[:0]
}

func (s *tcpNet) Close() error {
	s.stop()
	err := s.listener.Close()
	s.mu.Lock()
	for conn := range s.incoming {
		_ = conn.Close()
	}
	s.mu.Unlock()
	for _, line := range s.conns {
		line.interrupt()
	}
	s.running.Wait()
	return closed(s.Addr(), err)
}

// accept accepts connections until the listener is closed.
func (s *tcpNet) accept() {
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

// admit registers a connection for Close. It reports false above the limit and after Close.
func (s *tcpNet) admit(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	if len(s.incoming) >= 2*len(s.conns)+extraConns {
		s.refused.Add(1)
		return false
	}
	s.incoming[conn] = true
	return true
}

// serve reads packets from a connection until it ends, is idle for too long, or sends an invalid
// packet.
func (s *tcpNet) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		s.mu.Lock()
		delete(s.incoming, conn)
		s.mu.Unlock()
	}()
	_ = conn.SetDeadline(time.Now().Add(firstPacketTimeout))
	if s.config.TLS != nil {
		secured := tls.Server(conn, s.config.TLS)
		if err := secured.HandshakeContext(s.ctx); err != nil {
			s.config.Logger.Info("connection rejected: TLS handshake failed", "from", conn.RemoteAddr(), "err", err)
			return
		}
		conn = secured
	}
	s.read(conn, 2*(MaxPacket+lengthSize), s.replyFunc(conn), func(why outcome) bool {
		if why == delivered || why == strange {
			_ = conn.SetReadDeadline(time.Now().Add(idleTimeout))
			return true
		}
		return why == replayed // an old and a new connection may deliver the same packet
	})
}

// readReplies reads replies on an outgoing connection until it ends.
func (s *tcpNet) readReplies(conn net.Conn) {
	s.read(conn, MinPacket+lengthSize, func(flease.Process, []byte) {}, func(why outcome) bool {
		return why == delivered || why == strange
	})
}

// read reads packets from a connection until it ends or a packet has an unacceptable outcome.
func (s *tcpNet) read(conn net.Conn, buffer int, back replyFunc, acceptable func(outcome) bool) {
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

func (s *tcpNet) replyFunc(conn net.Conn) replyFunc {
	return func(_ flease.Process, packet []byte) {
		frame := binary.LittleEndian.AppendUint32(nil, uint32(len(packet)))
		_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := conn.Write(append(frame, packet...)); err != nil {
			s.drop(failed, 1)
			_ = conn.Close()
		}
	}
}

// next returns the next packet in the buffer, nil at the end.
func (s *tcpNet) next(in *bufio.Reader, r *reader) []byte {
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

// peek returns the next n bytes. Before it blocks it calls drain. A connection that ends within a packet counts it as
// malformed.
func (s *tcpNet) peek(in *bufio.Reader, n int, r *reader) []byte {
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
