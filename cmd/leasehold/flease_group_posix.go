//go:build unix && !linux

package main

import "syscall"

// withParent does nothing where the system does not kill a process whose parent
// has died. The guard does.
func withParent(a *syscall.SysProcAttr) *syscall.SysProcAttr { return a }
