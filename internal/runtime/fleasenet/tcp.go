package fleasenet

import (
	"cmp"
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
