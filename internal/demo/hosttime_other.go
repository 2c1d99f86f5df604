//go:build !linux

package demo

import "time"

// hostNow reads the wall clock: Go does not say what the monotonic clock counts
// from. Whoever sets the clock during a demo may see a dual ownership that was
// none.
func hostNow() hostTime { return hostTime(time.Now().UnixNano()) }
