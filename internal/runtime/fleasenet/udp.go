package fleasenet

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

const (
	// gathered is the size of the buffer of packets that wait for Flush. If it is full Send flushes.
	gathered = 512 << 10
	// maxBatch is the maximum number of packets per system call.
	maxBatch = 64
	// socketBuffer is the requested size of the socket buffers. The system may limit it.
	socketBuffer = 8 << 20
)

// udpNet is a network of datagrams on one socket.
type udpNet struct {
	base
	conn  *net.UDPConn
	batch *batch
	peers map[flease.Process]*udpPeer

	buffer  []byte     // packets that wait for Flush
	waiting []datagram // slices of buffer
}

// A datagram is a packet with its destination.
type datagram struct {
	packet []byte
	to     *net.UDPAddr
}

// UDP opens a network of datagrams. It is the fastest network: many messages per packet and many packets per system
// call.
func UDP(c Config) (Net, error) {
	if err := errors.Join(c.checkMembers(), c.checkAddresses()); err != nil {
		return nil, err
	}
	if c.TLS != nil {
		return nil, invalid("", "TLS is not available for UDP: use Key, or TCP")
	}
	conn, err := listenUDP(c.Listen)
	if err != nil {
		return nil, cannotListen(c.Listen, err)
	}
	d, err := newUDPNet(c, conn)
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

// newUDPNet owns the socket unless it returns an error.
func newUDPNet(c Config, conn *net.UDPConn) (*udpNet, error) {
	d := &udpNet{
		conn: conn, batch: newBatch(conn), peers: make(map[flease.Process]*udpPeer),
		buffer: make([]byte, 0, gathered), waiting: make([]datagram, 0, maxBatch),
	}
	if err := d.begin(c); err != nil {
		return nil, err
	}
	names, err := d.resolvePeers(&c)
	if err != nil {
		d.stop()
		return nil, err
	}
	enlarge(conn)
	d.running.Go(d.read)
	for _, name := range names {
		d.running.Go(func() { name.followName(d.ctx, c.Logger) })
	}
	return d, nil
}

func (d *udpNet) Addr() string { return d.conn.LocalAddr().String() }

func (d *udpNet) Send(to flease.Process, e *flease.Envelope, msgs []flease.Message) {
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
		if len(d.waiting) == maxBatch || cap(d.buffer)-len(d.buffer) < at.limit+largestMessage+maxField {
			d.Flush()
		}
		start := len(d.buffer)
		d.buffer, msgs = d.packer.pack(d.buffer, at.limit, to, e, msgs)
		d.waiting = append(d.waiting, datagram{d.buffer[start:], at.addr})
	}
}

func (d *udpNet) Flush() {
	for todo := d.waiting; len(todo) > 0; {
		n, err := d.batch.write(todo)
		todo = todo[n:]
		switch {
		case err == nil:
		case wouldBlock(err):
			d.drop(full, len(todo))
			todo = nil
		default: // of the first unsent packet
			d.drop(failed, 1)
			todo = todo[1:]
		}
	}
	d.waiting, d.buffer = d.waiting[:0], d.buffer[:0]
}

// read delivers packets until the socket is closed.
func (d *udpNet) read() {
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

// readPause is the pause after a failed read or accept, to avoid a busy loop.
const readPause = 10 * time.Millisecond

// pause waits; false: the context has ended.
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

func (d *udpNet) Close() error {
	d.stop()
	err := d.conn.Close()
	d.running.Wait()
	return closed(d.Addr(), err)
}
