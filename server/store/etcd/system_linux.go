package etcd

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// fileIdentity returns the inode number and the birth time of a file. An inode number alone may be
// reused for a copy.
func fileIdentity(path string) string {
	var s unix.Statx_t
	const want = unix.STATX_INO | unix.STATX_BTIME
	if err := unix.Statx(unix.AT_FDCWD, path, 0, want, &s); err != nil || s.Mask&want != want {
		return ""
	}
	return fmt.Sprintf("%x-%x.%x", s.Ino, s.Btime.Sec, s.Btime.Nsec)
}

// resendSoon bounds the retransmission timeout of a socket and of the connections that it accepts,
// and keeps the default total time of retransmissions. It requires Linux 6.15.
func resendSoon(socket syscall.RawConn) (err error) {
	if failed := socket.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS, int(resendWithin.Milliseconds()))
		if err == nil {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(resendFor.Milliseconds()))
		}
	}); failed != nil {
		return failed
	}
	return err
}
