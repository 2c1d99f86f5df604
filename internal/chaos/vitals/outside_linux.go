package vitals

import (
	"fmt"
	"os"
	"strings"
)

// Outside is what the system knows of a process.
func Outside(pid int) (Sample, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Sample{}, err
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return Sample{Memory: memoryIn(string(status)), Descriptors: float64(len(open))}, err
}

// memoryIn finds how much memory is a process's own in what Linux says about it.
func memoryIn(status string) float64 {
	for line := range strings.Lines(status) {
		if text, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			var kilobytes float64
			if _, err := fmt.Sscanf(text, "%g kB", &kilobytes); err == nil {
				return kilobytes * 1024
			}
		}
	}
	return 0
}
