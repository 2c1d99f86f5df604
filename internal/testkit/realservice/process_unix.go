//go:build unix && !linux

package realservice

import "syscall"

// attributes keep signals of the terminal from a server: the test ends it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
