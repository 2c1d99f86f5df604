//go:build unix

package fleasebench

import (
	"syscall"
	"time"
)

// cpuTime is the CPU time of this process; 0 if the system does not report it.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
