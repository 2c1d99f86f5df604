package availability

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// memoryLimit is enough for a supervisor: memory that a process had before does not count.
const memoryLimit = 64 << 20

// newMemoryGroup creates a memory cgroup with a limit below that of this process, of version 1 or 2.
func newMemoryGroup() (dir string, err error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	parent, file := memoryGroup(string(text))
	if dir, err = os.MkdirTemp(parent, "leasehold-bench-"); err != nil {
		return "", fmt.Errorf("no memory cgroup can be created: %w", err)
	}
	limit, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0) // the kernel creates it
	if err == nil {
		_, err = limit.WriteString(strconv.Itoa(memoryLimit))
		_ = limit.Close()
	}
	if err != nil {
		_ = os.Remove(dir)
		return "", fmt.Errorf("no memory limit can be set: %w", err)
	}
	return dir, nil
}

// memoryGroup returns the memory cgroup in a file /proc/PID/cgroup, and the name of the limit.
func memoryGroup(text string) (dir, limit string) {
	const root = "/sys/fs/cgroup"
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		switch controllers {
		case "memory":
			return filepath.Join(root, "memory", path), "memory.limit_in_bytes"
		case "":
			dir, limit = filepath.Join(root, path), "memory.max"
		}
	}
	return dir, limit
}
