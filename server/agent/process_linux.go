package agent

import (
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A process is a program on this computer, by a descriptor that refers to it even if its process ID is
// reused. All methods accept nil, which is any process.
type process struct {
	pid  int
	file *os.File // a pidfd
}

// openProcess returns the peer of a connection. If the peer has ended and its process ID is reused, the
// descriptor is that of another process, which only delays the detection: awaitEnd never returns before the
// end of the peer.
func openProcess(conn *net.UnixConn) (*process, error) {
	pid, err := peerOf(conn)
	if err != nil {
		return nil, err
	}
	return pidfd(pid)
}

func pidfd(pid int) (*process, error) {
	if pid == 0 {
		return nil, errors.New("the program runs in another PID namespace: share it with the agent (shareProcessNamespace), or join without process")
	}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	return &process{pid, os.NewFile(uintptr(fd), "pidfd")}, nil
}

// peerOf returns the process that has connected, even if another one uses the connection; 0 if it is in another PID namespace.
func peerOf(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	controlErr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if controlErr != nil || err != nil {
		return 0, os.NewSyscallError("SO_PEERCRED", err)
	}
	return int(cred.Pid), nil
}

// owns reports whether the process has connected a socket.
func (p *process) owns(conn *net.UnixConn) bool {
	if conn == nil {
		return false
	}
	pid, err := peerOf(conn)
	return err == nil && pid == p.pid
}

// awaitEnd waits until the process has ended, and reports false if interrupt is called first. A stopped
// process has not ended.
func (p *process) awaitEnd() bool {
	raw, err := p.file.SyscallConn()
	if err != nil {
		return false
	}
	ended := false
	_ = raw.Read(func(fd uintptr) bool { // its error is that of interrupt
		ended = hasEnded(fd)
		return ended
	})
	return ended
}

func hasEnded(pidfd uintptr) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

func (p *process) interrupt() { _ = p.file.SetReadDeadline(time.Unix(1, 0)) }

func (p *process) close() {
	if p != nil {
		_ = p.file.Close() // nothing was written
	}
}
