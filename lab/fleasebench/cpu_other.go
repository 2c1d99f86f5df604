//go:build !unix

package fleasebench

import "time"

// cpuTime is 0: this system does not report the CPU time of a process.
func cpuTime() time.Duration { return 0 }
