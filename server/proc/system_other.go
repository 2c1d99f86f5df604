//go:build !unix

package proc

import (
	"errors"
	"syscall"
)

// Processes cannot be paused: the signals do not exist.
const (
	CanPause     = false
	pauseSignal  = syscall.Signal(-1)
	resumeSignal = pauseSignal
)

func Attributes() *syscall.SysProcAttr { return nil }

// A guard would kill a process group when this process dies.
type guard struct{}

func newGuard() (*guard, error) {
	return nil, errors.New("on this system a command would outlive this process")
}

func (*guard) attributes() *syscall.SysProcAttr { return nil }
func (*guard) signal(syscall.Signal)            {}
func (*guard) end()                             {}
