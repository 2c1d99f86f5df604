//go:build !linux

package cluster

import "errors"

// Fill can be done on Linux alone, as can all of this.
func (*Member) Fill() error { return errors.ErrUnsupported }
