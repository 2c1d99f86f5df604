//go:build !unix

package child

import (
	"errors"
	"os"
)

const CanSuspend = false

func terminate(*os.Process) error { return errors.ErrUnsupported }

func suspend(*os.Process) error { return errors.ErrUnsupported }

func resume(*os.Process) error { return errors.ErrUnsupported }
