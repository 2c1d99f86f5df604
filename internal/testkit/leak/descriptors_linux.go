package leak

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// descriptors returns the open file descriptors of this process.
func descriptors() map[string]string {
	const dir = "/proc/self/fd"
	open := make(map[string]string)
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil // no leak detection
	}
	for _, n := range names {
		// The descriptor of the directory itself is closed already.
		if target, err := os.Readlink(filepath.Join(dir, n.Name())); err == nil {
			open[n.Name()] = target
		}
	}
	return open
}

// added returns the descriptors that are open and were not before, except for those of the runtime's poller.
func added(before map[string]string) (left []string) {
	for number, target := range descriptors() {
		if before[number] != target && before != nil && !strings.HasPrefix(target, "anon_inode:") {
			left = append(left, number+" is "+target)
		}
	}
	slices.Sort(left)
	return left
}
