//go:build !linux

package fleasenet

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"time"
)

// A batch reads and writes datagrams one by one, on systems without batches. One goroutine may read while another
// writes.
type batch struct {
	conn    *net.UDPConn
	buffer  []byte
	packets [1][]byte
	sender  netip.AddrPort // of the last read
}

// writeWait is the timeout of a write to a full socket buffer. Few systems block there.
const writeWait = 5 * time.Millisecond

func newBatch(conn *net.UDPConn) *batch {
	// One byte more than the maximum, to detect larger packets.
	return &batch{conn: conn, buffer: make([]byte, MaxPacket+1)}
}

// read waits for datagrams. They are valid until the next call.
func (b *batch) read() ([][]byte, error) {
	n, from, err := b.conn.ReadFromUDPAddrPort(b.buffer)
	if err != nil {
		return nil, err
	}
	b.packets[0], b.sender = b.buffer[:n], from
	return b.packets[:], nil
}

// from returns the source address of a datagram of the last read.
func (b *batch) from(int) *net.UDPAddr { return net.UDPAddrFromAddrPort(b.sender) }

// write sends datagrams and returns the number of sent ones; all unless there is an error.
func (b *batch) write(ds []datagram) (int, error) {
	if err := b.conn.SetWriteDeadline(time.Now().Add(writeWait)); err != nil {
		return 0, err
	}
	for i, d := range ds {
		if _, err := b.conn.WriteToUDP(d.packet, d.to); err != nil {
			return i, err
		}
	}
	return len(ds), nil
}

func wouldBlock(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

func enlarge(conn *net.UDPConn) {
	_ = conn.SetReadBuffer(socketBuffer)
	_ = conn.SetWriteBuffer(socketBuffer)
}
