//go:build !unix

package processgroup

import (
	"errors"
	"syscall"
)

// A group is the process group of a command. This system has none that end with
// this process.
type group struct{}

func newGroup() (*group, error) {
	return nil, errors.New("on this system a command would outlive this process")
}

func (*group) attributes() *syscall.SysProcAttr { return nil }
func (*group) signal(syscall.Signal)            {}
func (*group) dismiss()                         {}
