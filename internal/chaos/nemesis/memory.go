package nemesis

import (
	"errors"
	"fmt"
	"strings"
)

// dataIn finds the amount of data, in bytes, in what Linux says about a process.
func dataIn(status string) (uint64, error) {
	for line := range strings.Lines(status) {
		if text, ok := strings.CutPrefix(line, "VmData:"); ok {
			var kilobytes uint64
			_, err := fmt.Sscanf(text, "%d kB", &kilobytes)
			return kilobytes << 10, err
		}
	}
	return 0, errors.New("it does not say how much data it has")
}
