package supervise

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// A message is a packet with what the kernel says about its sender.
type message struct {
	data   []byte
	sender int      // process ID; 0 if it is unknown here
	socket *os.File // the attached descriptor; nil without one
	cut    bool     // the packet was too long
}

func (m *message) close() {
	if m.socket != nil {
		_ = m.socket.Close() // unused
	}
}

// passCredentials makes the kernel add the sender's process ID to each received message.
func passCredentials(fd int) error {
	return os.NewSyscallError("setsockopt", syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_PASSCRED, 1))
}

// decode parses the packet.
func (m *message) decode() (r request, err error) {
	if m.cut {
		return r, fmt.Errorf("the message has more than %d bytes", maxMessage)
	}
	err = decode(m.data, &r, &r.Version)
	return r, err
}

// receive reads a packet. Its data is valid until the next call.
func receive(conn *net.UnixConn, data []byte) (m message, err error) {
	ancillary := make([]byte, syscall.CmsgSpace(syscall.SizeofUcred)+syscall.CmsgSpace(4))
	n, ancillaryLen, flags, _, err := conn.ReadMsgUnix(data, ancillary)
	if err != nil && !errors.Is(err, io.EOF) { // also of an empty packet, which has a sender
		return m, err
	}
	m.data = data[:n]
	controls, err := syscall.ParseSocketControlMessage(ancillary[:ancillaryLen])
	for i := range controls {
		m.read(&controls[i])
	}
	switch {
	case err != nil:
	case n == 0 && m.sender == 0:
		err = io.EOF
	default:
		m.cut = flags&syscall.MSG_TRUNC != 0
	}
	if err != nil {
		m.close()
	}
	return m, err
}

// read takes over a control message. Descriptors beyond the first are closed.
func (m *message) read(c *syscall.SocketControlMessage) {
	if cred, err := syscall.ParseUnixCredentials(c); err == nil {
		m.sender = int(cred.Pid)
		return
	}
	fds, err := syscall.ParseUnixRights(c)
	if err != nil {
		return
	}
	for _, fd := range fds {
		if m.socket != nil {
			_ = syscall.Close(fd) // unused
			continue
		}
		m.socket = os.NewFile(uintptr(fd), "supervised")
	}
}
