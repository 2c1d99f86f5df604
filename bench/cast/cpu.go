package cast

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// CPUTime is what this process has used so far.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// CPUTimeOf is what another process has used so far, as Linux tells.
func CPUTimeOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(string(text))
}

// tick is the unit of times in /proc, the same on all of Linux's architectures
// that matter here.
const tick = 10 * time.Millisecond

// parseStat finds the time in user mode and in the kernel, fields 14 and 15. The
// second field, a name in parentheses, may have blanks in it.
func parseStat(text string) (time.Duration, error) {
	_, rest, _ := strings.Cut(text[strings.LastIndexByte(text, ')')+1:], " ")
	fields := strings.Fields(rest)
	const first = 3 // the field after the name
	if len(fields) <= 15-first {
		return 0, fmt.Errorf("a process's stat with %d fields after its name", len(fields))
	}
	var sum time.Duration
	for _, field := range fields[14-first : 16-first] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("a process's times: %w", err)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}
