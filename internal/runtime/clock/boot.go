package clock

import (
	"os"
	"strings"
	"time"
)

// Boot returns a name of the current boot and the time since it, including suspends. Processes with the
// same name have the same clock. The name is empty if the system does not provide it.
func Boot() (name string, uptime time.Duration) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0
	}
	// Each time namespace has its own clock. Kernels without them have no such link.
	namespace, _ := os.Readlink("/proc/self/ns/time")
	up, ok := sinceBoot()
	if !ok {
		return "", 0
	}
	return strings.TrimSpace(string(id)) + namespace, up
}
