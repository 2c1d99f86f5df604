//go:build !linux

package daemon

// OpenFiles returns how many files and connections this process has open, and how many
// it may, where the system says so.
func OpenFiles() (used, most uint64, known bool) { return 0, 0, false }
