package etcd

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// resendSoon bounds how long a socket, and those that it accepts, wait until they send
// again what was not acknowledged, and has them go on with it for as long as others do.
// Linux can do that since 6.15.
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
