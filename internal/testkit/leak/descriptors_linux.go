package leak

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// descriptors returns what this process has open, by number.
func descriptors() map[string]string {
	const dir = "/proc/self/fd"
	open := make(map[string]string)
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil // nothing is known, and nothing is found
	}
	for _, n := range names {
		// The one that the directory is read by is gone, and has no target.
		if target, err := os.Readlink(filepath.Join(dir, n.Name())); err == nil {
			open[n.Name()] = target
		}
	}
	return open
}

// added returns what is open and was not before, but for what the runtime polls with, which it
// keeps.
func added(before map[string]string) (left []string) {
	for number, target := range descriptors() {
		if before[number] != target && before != nil && !strings.HasPrefix(target, "anon_inode:") {
			left = append(left, number+" is "+target)
		}
	}
	slices.Sort(left)
	return left
}
