//go:build !linux

package clock

import "time"

// Tolerance is more than the wall clock can be slewed within offsetInterval.
func (system) Tolerance() time.Duration { return 50 * time.Millisecond }

// Suspended is not available: a forward jump of the wall clock counts as a suspend.
func (system) Suspended() (time.Duration, bool) { return 0, false }

// sinceBoot is not available.
func sinceBoot() (time.Duration, bool) { return 0, false }
