package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Tolerance is small, because a larger difference costs only a few system calls: on Linux, slewing changes
// both clocks alike.
func (system) Tolerance() time.Duration { return time.Millisecond }

// Suspended returns CLOCK_BOOTTIME minus CLOCK_MONOTONIC. They are read one after the other: the time in
// between increases the result, which is safe. It retries if that time is long.
func (s system) Suspended() (time.Duration, bool) {
	var ahead time.Duration
	for range 8 {
		before, ok := read(unix.CLOCK_MONOTONIC)
		boot, okBoot := read(unix.CLOCK_BOOTTIME)
		after, _ := read(unix.CLOCK_MONOTONIC)
		if !ok || !okBoot {
			return 0, false
		}
		ahead = boot - before
		if after-before < s.Tolerance()/4 {
			break
		}
	}
	return ahead, true
}

// read reads a clock. It fails if the kernel does not have it or a sandbox denies it.
func read(clock int32) (time.Duration, bool) {
	var t unix.Timespec
	err := unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano()), err == nil
}

// sinceBoot returns the time since boot, including suspends.
func sinceBoot() (time.Duration, bool) { return read(unix.CLOCK_BOOTTIME) }
