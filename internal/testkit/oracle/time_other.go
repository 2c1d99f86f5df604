//go:build !linux

package oracle

import "time"

// Now reads the wall clock: the base of Go's monotonic clock is unknown. A clock that is set during
// a demo may look like dual ownership.
func Now() Time { return Time(time.Now().UnixNano()) }
