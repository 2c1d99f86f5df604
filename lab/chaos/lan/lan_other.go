//go:build !linux

package lan

import (
	"context"
	"errors"
	"io"
	"time"
)

// Available returns why there is no network on this system.
func Available() error {
	return errors.New("network namespaces require Linux")
}

func (*Host) enterNamespace() error { return Available() }

// ResendWithin is not supported without namespaces.
func (*Host) ResendWithin(time.Duration) error { return Available() }

// Rootless returns false without namespaces.
func Rootless() bool { return false }

// Again is not supported without namespaces.
func Again(context.Context, io.Reader, io.Writer, io.Writer, string, ...string) (int, error) {
	return 0, errors.ErrUnsupported
}
