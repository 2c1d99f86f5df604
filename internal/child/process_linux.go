package child

import "syscall"

// attributes makes the kernel kill a child when its parent dies, even a child
// that is stopped or stuck. A process group of its own keeps the terminal's
// Ctrl-C from it: the parent decides when children end.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
