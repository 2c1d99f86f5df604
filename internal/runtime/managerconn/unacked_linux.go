package managerconn

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limitUnacked makes the system close a connection on which sent data stays unacknowledged for the given time: the path or the
// host is gone. A slow process does not end its connections, because its system acknowledges the data.
func limitUnacked(raw syscall.RawConn, limit time.Duration) {
	_ = raw.Control(func(fd uintptr) { // without the option, liveness drops the connection later
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
	})
}
