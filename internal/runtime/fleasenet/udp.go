package fleasenet

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

const (
	// gathered is how many bytes of packets wait for Flush. When the next packet
	// may find no room, those that wait go first.
	gathered = 512 << 10
	// atATime is how many packets go to the system, or come from it, in one call.
	atATime = 64
	// socketBuffer is what we would like the system to keep for us while we are
	// busy. It may give less.
	socketBuffer = 8 << 20
)

// datagrams is a network of datagrams on one socket.
type datagrams struct {
	party
	conn  *net.UDPConn
	batch *batch
	peers map[flease.Process]*destination

	buffer  []byte     // the packets that wait
	waiting []datagram // where they are
}

// A datagram is a packet, and where it goes.
type datagram struct {
	packet []byte
	to     *net.UDPAddr
}

// UDP opens a network of datagrams. It is the fastest of the networks: many
// messages go into a packet, and many packets into a system call.
func UDP(c Config) (Net, error) {
	if err := errors.Join(c.checkMembers(), c.checkAddresses()); err != nil {
		return nil, err
	}
	if c.TLS != nil {
		return nil, invalid("", "datagrams have no TLS: use Key, or TCP")
	}
	conn, err := listenUDP(c.Listen)
	if err != nil {
		return nil, cannotListen(c.Listen, err)
	}
	d, err := newDatagrams(c, conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return d, nil
}

func listenUDP(addr string) (*net.UDPConn, error) {
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil
}

// newDatagrams takes over the socket, if it returns no error.
func newDatagrams(c Config, conn *net.UDPConn) (*datagrams, error) {
	d := &datagrams{
		conn: conn, batch: newBatch(conn), peers: make(map[flease.Process]*destination),
		buffer: make([]byte, 0, gathered), waiting: make([]datagram, 0, atATime),
	}
	if err := d.begin(c); err != nil {
		return nil, err
	}
	names, err := d.find(&c)
	if err != nil {
		d.stop()
		return nil, err
	}
	enlarge(conn)
	d.running.Go(d.read)
	for _, name := range names {
		d.running.Go(func() { name.follow(d.ctx, c.Logger) })
	}
	return d, nil
}

func (d *datagrams) Addr() string { return d.conn.LocalAddr().String() }

func (d *datagrams) Send(to flease.Process, e *flease.Envelope, msgs []flease.Message) {
	peer := d.peers[to]
	if peer == nil {
		d.unknown(to)
		return
	}
	at := peer.at.Load()
	if at == nil {
		d.drop(failed, 1)
		return
	}
	for first := true; first || len(msgs) > 0; first = false {
		if len(d.waiting) == atATime || cap(d.buffer)-len(d.buffer) < at.limit+largestMessage+widest {
			d.Flush()
		}
		start := len(d.buffer)
		d.buffer, msgs = d.packer.pack(d.buffer, at.limit, to, e, msgs)
		d.waiting = append(d.waiting, datagram{d.buffer[start:], at.addr})
	}
}

func (d *datagrams) Flush() {
	for todo := d.waiting; len(todo) > 0; {
		n, err := d.batch.write(todo)
		todo = todo[n:]
		switch {
		case err == nil:
		case wouldBlock(err):
			d.drop(full, len(todo))
			todo = nil
		default: // the first that was not sent is to blame
			d.drop(failed, 1)
			todo = todo[1:]
		}
	}
	d.waiting, d.buffer = d.waiting[:0], d.buffer[:0]
}

// read hands over what comes until the socket is closed.
func (d *datagrams) read() {
	var from *net.UDPAddr
	r := &reader{inbox: d.inbox, from: func() string { return from.String() }}
	r.back = func(_ flease.Process, packet []byte) {
		if _, err := d.conn.WriteToUDP(packet, from); err != nil {
			d.drop(failed, 1)
		}
	}
	for {
		packets, err := d.batch.read()
		if d.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil && !pause(d.ctx, readPause) {
			return
		}
		for i, p := range packets {
			from = d.batch.from(i)
			r.packet(p)
		}
		r.drain()
	}
}

// readPause keeps a socket that fails without end from taking all our time.
const readPause = 10 * time.Millisecond

// pause waits, and reports whether it was for the whole time.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (d *datagrams) Close() error {
	d.stop()
	err := d.conn.Close()
	d.running.Wait()
	return closed(d.Addr(), err)
}
