//go:build unix && !linux

package child

import "syscall"

// attributes keeps the terminal's Ctrl-C from a child: the parent decides when
// children end.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
