//go:build unix && !linux

package processgroup

import "syscall"

// withParent does nothing: only the guard kills the process when this one dies.
func withParent(a *syscall.SysProcAttr) *syscall.SysProcAttr { return a }
