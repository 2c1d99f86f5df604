//go:build !linux

package etcd

import (
	"errors"
	"syscall"
)

func fileIdentity(string) string { return "" }

func resendSoon(syscall.RawConn) error { return errors.ErrUnsupported }
