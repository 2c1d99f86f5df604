package e2e

import "syscall"

// attributes makes the kernel kill a child when the test binary dies, even a
// child that is stopped. A process group of its own keeps the terminal's Ctrl-C
// from it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
