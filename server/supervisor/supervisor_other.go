//go:build !linux

package supervisor

import (
	"context"
	"errors"
)

// Supported reports whether Run works on this system.
const Supported = false

// Run returns an error: only Linux identifies the process that registers a session, and reports the end of a
// process before its ID is reused.
func Run(context.Context, Config) (Exit, error) {
	return Exit{}, errors.New("leasehold run needs Linux: start the command without it, and its leases expire after a crash")
}

// Die does nothing.
func (e Exit) Die() {}
