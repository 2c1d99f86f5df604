// Package leak fails a test binary that leaks goroutines or file descriptors.
//
//	func TestMain(m *testing.M) { leak.Main(m) }
//
// It is for tests without testing/synctest, which fails if a goroutine outlives its test.
package leak

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"go.uber.org/goleak"
)

type tests interface{ Run() int }

// Main runs tests and exits.
func Main(m tests) { os.Exit(Checked{m}.Run()) }

// Checked are tests with leak detection.
type Checked struct{ Tests tests }

// Run runs the tests, and returns the exit status.
func (c Checked) Run() int {
	before := descriptors()
	if status := c.Tests.Run(); status != 0 {
		return status // failed tests may leak
	}
	return check(os.Stderr, before)
}

// patience is the maximum time for goroutines and descriptors to end.
const patience = 5 * time.Second

func check(out io.Writer, before map[string]string) int {
	http.DefaultClient.CloseIdleConnections() // shared by all tests
	deadline := time.Now().Add(patience)
	err := goleak.Find()
	for ; err != nil && time.Now().Before(deadline); err = goleak.Find() { // Find waits for a moment
	}
	if err != nil {
		_, _ = fmt.Fprintf(out, "tests passed, but leaked goroutines: %v\n", err)
		return 1
	}
	left := added(before)
	for ; len(left) > 0 && time.Now().Before(deadline); left = added(before) {
		time.Sleep(10 * time.Millisecond) // the system may be late
	}
	if len(left) > 0 {
		_, _ = fmt.Fprintf(out, "tests passed, but leaked file descriptors: %q\n", left)
		return 1
	}
	return 0
}
