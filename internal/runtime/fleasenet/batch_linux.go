package fleasenet

import (
	"errors"
	"net"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// A batch reads and writes many datagrams per system call, with recvmmsg and sendmmsg. One goroutine may read while
// another writes.
type batch struct {
	// Batches are the same for both IP versions.
	conn    *ipv4.PacketConn
	in, out []ipv4.Message
	packets [][]byte // of the last read
}

func newBatch(conn *net.UDPConn) *batch {
	b := &batch{
		conn: ipv4.NewPacketConn(conn), packets: make([][]byte, 0, maxBatch),
		in: make([]ipv4.Message, maxBatch), out: make([]ipv4.Message, maxBatch),
	}
	for i := range b.in {
		// One byte more than the maximum, to detect larger packets.
		b.in[i].Buffers = [][]byte{make([]byte, MaxPacket+1)}
		b.out[i].Buffers = make([][]byte, 1)
	}
	return b
}

// read waits for datagrams. They are valid until the next call.
func (b *batch) read() ([][]byte, error) {
	n, err := b.conn.ReadBatch(b.in, 0)
	b.packets = b.packets[:0]
	for i := range max(n, 0) {
		b.packets = append(b.packets, b.in[i].Buffers[0][:b.in[i].N])
	}
	return b.packets, err
}

// from returns the source address of a datagram of the last read.
func (b *batch) from(i int) *net.UDPAddr {
	from, _ := b.in[i].Addr.(*net.UDPAddr)
	return from
}

// write sends up to maxBatch datagrams without blocking. It returns the number of sent ones; all unless there is an
// error.
func (b *batch) write(ds []datagram) (int, error) {
	for i, d := range ds {
		b.out[i].Buffers[0], b.out[i].Addr = d.packet, d.to
	}
	sent := 0
	for sent < len(ds) {
		n, err := b.conn.WriteBatch(b.out[sent:len(ds)], unix.MSG_DONTWAIT)
		if err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

func wouldBlock(err error) bool {
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS)
}

// enlarge requests large socket buffers, above the system's limit if the process is privileged.
func enlarge(conn *net.UDPConn) {
	_ = conn.SetReadBuffer(socketBuffer)
	_ = conn.SetWriteBuffer(socketBuffer)
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer)
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, socketBuffer)
	})
}
