//go:build unix && !linux

package e2e

import "syscall"

// attributes keeps the terminal's Ctrl-C from a child.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
