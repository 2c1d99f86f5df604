package oracle

import "golang.org/x/sys/unix"

// Now reads CLOCK_MONOTONIC, which cannot be set and is the same in all processes.
func Now() Time {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // every kernel has this clock
	}
	return Time(t.Nano())
}
