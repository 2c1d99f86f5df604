//go:build !linux

package lan

import (
	"context"
	"errors"
	"io"
	"time"
)

// Available says why there can be no network here.
func Available() error {
	return errors.New("a network of one's own takes Linux")
}

func (*Host) settle() error { return Available() }

// ResendWithin is for hosts, and there are none.
func (*Host) ResendWithin(time.Duration) error { return Available() }

// Rootless reports that there are no namespaces here.
func Rootless() bool { return false }

// Again is not supported without namespaces.
func Again(context.Context, io.Reader, io.Writer, io.Writer, string, ...string) (int, error) {
	return 0, errors.ErrUnsupported
}
