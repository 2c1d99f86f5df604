//go:build !linux

package clock

import "time"

// Tolerance is as much as the wall clock may be slewed between two times that
// the offset is remembered, and more.
func (system) Tolerance() time.Duration { return 50 * time.Millisecond }

// Suspended is not known: a wall clock that jumps forward counts as a sleep.
func (system) Suspended() (time.Duration, bool) { return 0, false }

// sinceBoot is not known here.
func sinceBoot() (time.Duration, bool) { return 0, false }
