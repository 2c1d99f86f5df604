// Package leak fails a test binary that leaves goroutines or descriptors behind.
//
//	func TestMain(m *testing.M) { leak.Main(m) }
//
// Within testing/synctest no goroutine outlives its test anyway. This is for the rest.
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

// Main runs tests, and ends the process.
func Main(m tests) { os.Exit(Checked{m}.Run()) }

// Checked are tests that also fail if they leave something behind.
type Checked struct{ Tests tests }

// Run runs them, and returns the process's status.
func (c Checked) Run() int {
	before := descriptors()
	if status := c.Tests.Run(); status != 0 {
		return status // what failed may have left anything
	}
	return check(os.Stderr, before)
}

// patience is how long what was told to end may take.
const patience = 5 * time.Second

func check(out io.Writer, before map[string]string) int {
	http.DefaultClient.CloseIdleConnections() // everybody's, and nobody's to close
	deadline := time.Now().Add(patience)
	err := goleak.Find()
	for ; err != nil && time.Now().Before(deadline); err = goleak.Find() { // it waits by itself, for a moment
	}
	if err != nil {
		_, _ = fmt.Fprintf(out, "tests have passed, and have left goroutines behind: %v\n", err)
		return 1
	}
	left := added(before)
	for ; len(left) > 0 && time.Now().Before(deadline); left = added(before) {
		time.Sleep(10 * time.Millisecond) // the system is a moment behind
	}
	if len(left) > 0 {
		_, _ = fmt.Fprintf(out, "tests have passed, and have left descriptors open: %q\n", left)
		return 1
	}
	return 0
}
