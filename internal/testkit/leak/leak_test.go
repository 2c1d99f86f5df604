package leak

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

type run func() int

func (r run) Run() int { return r() }

func TestStatusOfTestsComesFirst(t *testing.T) {
	if got := (Checked{run(func() int { return 3 })}).Run(); got != 3 {
		t.Errorf("status %d, want 3", got)
	}
	if got := (Checked{run(func() int { return 0 })}).Run(); got != 0 {
		t.Errorf("status %d, want 0", got)
	}
}

// The message has the stack of a leaked goroutine.
func TestGoroutines(t *testing.T) {
	var out strings.Builder
	end := make(chan struct{})
	defer close(end)
	go func() { <-end }()
	if check(&out, descriptors()) != 1 || !strings.Contains(out.String(), "leak.TestGoroutines.func") {
		t.Errorf("output %q", out.String())
	}
}

func TestDescriptors(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors are available on Linux only")
	}
	before := descriptors()
	if left := added(before); len(left) != 0 {
		t.Errorf("leaks without an open file: %q", left)
	}
	f, err := os.CreateTemp(t.TempDir(), "left-open")
	if err != nil {
		t.Fatal(err)
	}
	if left := added(before); len(left) != 1 || !strings.Contains(left[0], "left-open") {
		t.Errorf("leaks with an open file: %q", left)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if left := added(before); len(left) != 0 {
		t.Errorf("leaks after closing the file: %q", left)
	}
}
