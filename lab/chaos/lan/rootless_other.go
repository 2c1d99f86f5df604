//go:build !linux

package lan

import (
	"context"
	"errors"
	"io"
)

// Rootless reports that there are no namespaces here.
func Rootless() bool { return false }

// Again is not supported without namespaces.
func Again(context.Context, io.Reader, io.Writer, io.Writer, string, ...string) (int, error) {
	return 0, errors.ErrUnsupported
}
