package main

import "syscall"

// withParent has a process killed when we die. The guard does that, too, but might
// be killed itself.
func withParent(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	a.Pdeathsig = syscall.SIGKILL
	return a
}
