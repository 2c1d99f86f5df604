//go:build unix && !linux

package proc

import "syscall"

// Attributes keeps the terminal's Ctrl-C from a child.
func Attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
