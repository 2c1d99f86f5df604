package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Tolerance is small, because what differs by more costs no more than a few
// system calls: on Linux, slewing moves both clocks alike.
func (system) Tolerance() time.Duration { return time.Millisecond }

// Suspended is by how much CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC. They are
// read one after the other, and what passes in between makes the result too
// large, which is safe. It tries again if that is much.
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

// read asks the kernel, which may not know the clock or, in a sandbox, refuse.
func read(clock int32) (time.Duration, bool) {
	var t unix.Timespec
	err := unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano()), err == nil
}

// sinceBoot returns for how long the machine has run, time asleep included.
func sinceBoot() (time.Duration, bool) { return read(unix.CLOCK_BOOTTIME) }
