//go:build unix

package proc

import (
	"os"
	"syscall"
)

// CanPause reports whether processes can be paused. One that is paused when we die is resumed
// by the system, since its process group is orphaned, and ends.
const CanPause = true

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

func pause(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
