package clock

import (
	"os"
	"strings"
	"time"
)

// Boot names the current boot of this machine, and returns for how long it has run, time
// asleep included. Processes that are told the same name measure with the same clock. It
// returns nothing if the system does not say.
func Boot() (name string, uptime time.Duration) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0
	}
	// A time namespace has a clock of its own. Kernels without them have no such link.
	namespace, _ := os.Readlink("/proc/self/ns/time")
	up, ok := sinceBoot()
	if !ok {
		return "", 0
	}
	return strings.TrimSpace(string(id)) + namespace, up
}
