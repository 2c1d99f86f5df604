package demo

import "golang.org/x/sys/unix"

// hostNow reads CLOCK_MONOTONIC, which nobody can set and which counts from the
// same instant in all processes.
func hostNow() hostTime {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // every kernel has this clock
	}
	return hostTime(t.Nano())
}
