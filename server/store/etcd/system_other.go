//go:build !linux

package etcd

import (
	"errors"
	"syscall"
)

func fileIdentity(string) string { return "" }

// resendSoon does nothing where the system cannot be asked.
func resendSoon(syscall.RawConn) error { return errors.ErrUnsupported }
