//go:build !linux

package managerconn

import (
	"syscall"
	"time"
)

func limitUnacked(syscall.RawConn, time.Duration) {}
