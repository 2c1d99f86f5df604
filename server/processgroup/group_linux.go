package processgroup

import "syscall"

// withParent lets the kernel kill a process when this one dies, in case that the
// guard was killed.
func withParent(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	a.Pdeathsig = syscall.SIGKILL
	return a
}
