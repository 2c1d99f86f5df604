package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// Dial connects to the supervisor whose socket a value of Variable describes, and closes the inherited
// descriptor, so that no child of this process inherits it. It returns nil for an empty value.
func Dial(value string) (*Client, error) {
	if value == "" {
		return nil, nil
	}
	fd, err := inherited(value)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd) //nolint:errcheck // it was only written
	syscall.CloseOnExec(fd)
	pair, err := socketPair()
	if err != nil {
		return nil, err
	}
	err = sendHello(fd, pair[1])
	_ = pair[1].Close() // the supervisor has a copy
	if err != nil {
		return nil, errors.Join(connError(err), pair[0].Close())
	}
	conn, err := unixConn(pair[0])
	if err != nil {
		return nil, err
	}
	return newClient(conn)
}

// inherited returns the descriptor that a value describes, if it is still that socket.
func inherited(value string) (fd int, err error) {
	var (
		inode uint64
		stat  syscall.Stat_t
	)
	if _, err := fmt.Sscanf(value, "%d:%d", &fd, &inode); err != nil {
		return 0, fmt.Errorf("%s is %q: want the number and inode of a socket", Variable, value)
	}
	if syscall.Fstat(fd, &stat) != nil || stat.Ino != inode || stat.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
		return 0, fmt.Errorf("descriptor %d is not the socket of a supervisor: this program, or one that started it, has closed it", fd)
	}
	return fd, nil
}

// describe returns the value of Variable for a socket that a process inherits as fd.
func describe(socket, fd int) (string, error) {
	var stat syscall.Stat_t
	if err := syscall.Fstat(socket, &stat); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d:%d", fd, stat.Ino), nil
}

// socketPair returns connected sockets that keep the borders of messages.
func socketPair() (pair [2]*os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return pair, os.NewSyscallError("socketpair", err)
	}
	return [2]*os.File{os.NewFile(uintptr(fds[0]), "supervised"), os.NewFile(uintptr(fds[1]), "supervisor")}, nil
}

// sendHello sends a socket to the supervisor. It never waits for space in the queue.
func sendHello(fd int, socket *os.File) error {
	data, err := json.Marshal(request{Version: version, Op: opHello})
	if err != nil {
		return err
	}
	rights := syscall.UnixRights(int(socket.Fd()))
	return syscall.Sendmsg(fd, data, rights, nil, syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT)
}

// unixConn takes a socket over as a connection.
func unixConn(socket *os.File) (*net.UnixConn, error) {
	conn, err := net.FileConn(socket) // duplicates it
	_ = socket.Close()                // nothing was written
	if err != nil {
		return nil, err
	}
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("the socket is not a Unix socket"), conn.Close())
	}
	return u, nil
}
