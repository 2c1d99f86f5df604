//go:build !unix

package demo

import (
	"errors"
	"os"
)

const canSuspend = false

func terminate(*os.Process) error { return errors.ErrUnsupported }

func suspend(*os.Process) error { return errors.ErrUnsupported }

func resume(*os.Process) error { return errors.ErrUnsupported }
