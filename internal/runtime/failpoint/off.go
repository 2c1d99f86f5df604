//go:build !failpoints

package failpoint

// Here is a point that can kill or pause.
func Here(string) {}

// Fail is a point that can fail an operation with the returned error.
func Fail(string) error { return nil }

// Drop is a point that can drop a message or result: it returns true.
func Drop(string) bool { return false }

// Environ returns the environment unchanged. The caller then rejects the variable for failpoints as an unknown
// setting.
func Environ(environ []string) ([]string, error) { return environ, nil }
