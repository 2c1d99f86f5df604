//go:build !unix

package proc

import (
	"errors"
	"os"
	"syscall"
)

const CanPause = false

func Attributes() *syscall.SysProcAttr { return nil }

func terminate(*os.Process) error { return errors.ErrUnsupported }

func pause(*os.Process) error { return errors.ErrUnsupported }

func resume(*os.Process) error { return errors.ErrUnsupported }
