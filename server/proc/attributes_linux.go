package proc

import "syscall"

// Attributes makes the kernel kill a child when its parent dies, even a paused one. A process
// group of its own keeps the terminal's Ctrl-C from it.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
