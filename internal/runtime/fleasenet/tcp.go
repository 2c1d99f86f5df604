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

// A connection carries packets one way, each with its length in front, in four
// bytes. Each process dials those that it has something to say to. Only answers
// that must go the way of the question come the other way.
const lengthSize = 4

// Bounds on what is done for a peer, and for whoever connects.
const (
	// maxQueue is how many bytes of packets may wait for a peer. When there is no
	// room, new packets are lost: those that wait are on their way at least, and
	// whatever is lost will be sent again.
	maxQueue = 1 << 20
	// dialWait bounds the making of a connection, with its handshake.
	dialWait = 3 * time.Second
	// writeTimeout is when a peer that does not read is given up.
	writeTimeout = 5 * time.Second
	// closeAfter is how long a connection stays that nobody uses; the one who
	// dialled closes it before the other does.
	closeAfter = 60 * time.Second
	// helloWait is how long a stranger has to prove with a packet that it is one
	// of us.
	helloWait = 5 * time.Second
	// strangers is how many connections may come in besides two of each peer: the
	// present one, and one of before that nobody has seen break.
	strangers = 16

	// lasting is how long a connection stays at least that the other end has no
	// objections to.
	lasting = 2 * time.Second

	leastBackoff = 50 * time.Millisecond
	mostBackoff  = 2 * time.Second
)

// streams is a network of connections.
type streams struct {
	party
	listener net.Listener
	limit    int
	lines    map[flease.Process]*line
	dirty    []*line // have something to flush

	mu       sync.Mutex
	incoming map[net.Conn]bool
}

// TCP opens a network of connections, for where datagrams are not let through, or
// TLS is asked for. It costs more than UDP, and a packet that is lost delays
// those after it.
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
	s, err := newStreams(c, l)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

// newStreams takes over the listener, if it returns no error.
func newStreams(c Config, l net.Listener) (*streams, error) {
	s := &streams{
		listener: l, limit: cmp.Or(c.MaxPacket, MaxPacket),
		lines: make(map[flease.Process]*line), incoming: make(map[net.Conn]bool),
	}
	if err := s.begin(c); err != nil {
		return nil, err
	}
	for _, p := range c.Peers {
		if p.Process != c.Self || plain(p.Addr) != plain(s.Addr()) { // that is us
			line := newLine(p, &c, &s.tally, s.hear)
			s.lines[p.Process] = line
			s.running.Go(func() { line.run(s.ctx) })
		}
	}
	s.running.Go(s.accept)
	return s, nil
}

func (s *streams) Addr() string { return s.listener.Addr().String() }

func (s *streams) Send(to flease.Process, e *flease.Envelope, msgs []flease.Message) {
	line := s.lines[to]
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

func (s *streams) Flush() {
	for i, line := range s.dirty {
		line.flush()
		s.dirty[i] = nil
	}
	s.dirty = s.dirty[:0]
}

func (s *streams) Close() error {
	s.stop()
	err := s.listener.Close()
	s.mu.Lock()
	for conn := range s.incoming {
		_ = conn.Close()
	}
	s.mu.Unlock()
	for _, line := range s.lines {
		line.interrupt()
	}
	s.running.Wait()
	return closed(s.Addr(), err)
}

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
