//go:build unix

package child

import (
	"os"
	"syscall"
)

// CanSuspend says whether processes can be stopped. One that is stopped when we
// die goes on, and ends: the system sees to that for a process group that nobody
// is left to look after.
const CanSuspend = true

// terminate asks a process to end.
func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
