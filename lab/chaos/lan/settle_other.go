//go:build !linux

package lan

import (
	"errors"
	"time"
)

// Available says why there can be no network here.
func Available() error {
	return errors.New("a network of one's own takes Linux")
}

func (*Host) settle() error { return Available() }

// ResendWithin is for hosts, and there are none.
func (*Host) ResendWithin(time.Duration) error { return Available() }
