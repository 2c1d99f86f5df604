//go:build !linux

package lan

import "errors"

// Available says why there can be no network here.
func Available() error {
	return errors.New("a network of one's own takes Linux")
}

func (*Host) settle() error { return Available() }
