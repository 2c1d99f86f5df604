//go:build !failpoints

package failpoint

// Here is a place to die or to stand still at.
func Here(string) {}

// Fail is a place at which an operation may fail: then it returns why.
func Fail(string) error { return nil }

// Drop is a place at which something may be lost: then it returns true.
func Drop(string) bool { return false }

// Environ takes what is meant for failpoints out of an environment. Without them
// nothing is, and whoever set it is told that there is no such setting.
func Environ(environ []string) ([]string, error) { return environ, nil }
