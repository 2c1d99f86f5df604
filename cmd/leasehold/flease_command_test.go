//go:build unix

package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A livenessPipe is a named pipe that a command and its child processes hold open. Reading it returns EOF when
// all of them have ended.
type livenessPipe struct {
	path string
	open chan *os.File // receives the read end when a process has opened the pipe
}

func newLivenessPipe(t *testing.T) *livenessPipe {
	t.Helper()
	w := &livenessPipe{path: filepath.Join(t.TempDir(), "pipe"), open: make(chan *os.File, 1)}
	if err := syscall.Mkfifo(w.path, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		f, _ := os.Open(w.path) // blocks until a process opens the pipe for writing
		w.open <- f
	}()
	return w
}

// script returns a command that runs a shell in a shell. trap is prepended to the scripts of both. The inner shell
// writes a line when it has begun, and ends by itself only after the test.
func (w *livenessPipe) script(trap string) []string {
	return []string{"--", "sh", "-c", trap + `sh -c '` + trap + `exec >"$0"; echo begun; sleep 100; echo ended' ` + w.path + `; true`}
}

// begin waits until the command has begun.
func (w *livenessPipe) begin(t *testing.T) *bufio.Reader {
	t.Helper()
	var f *os.File
	select {
	case f = <-w.open:
	case <-time.After(time.Minute):
		t.Fatal("the command has not begun within a minute")
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := f.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(f)
	if line, err := lines.ReadString('\n'); line != "begun\n" {
		t.Fatalf("first line %q, %v; want \"begun\"", line, err)
	}
	return lines
}

// waitForEOF waits until all processes that hold the pipe open have ended.
func waitForEOF(t *testing.T, lines *bufio.Reader) {
	t.Helper()
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("the command has not ended: %q, %v", rest, err)
	}
}

// The command of a lease and its child processes end with the process that holds the lease, however that ends.
// After a kill, the next process acquires the lease at once.
func TestFleaseCommandEndsWithHolder(t *testing.T) {
	members, at := group(t)
	w := newLivenessPipe(t)
	holder := exec.Command("leasehold", append([]string{"flease", "acquire", "nightly", "--member", at[0]}, w.script("")...)...) // TestMain has put it on the path
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	lines := w.begin(t)
	_ = holder.Process.Kill()
	_ = holder.Wait() // it was killed
	waitForEOF(t, lines)
	next := inTerminal(t, "flease", "acquire", "nightly", "--member", at[1], "--", "true")
	next.end(t, 0)

	// An interrupt is forwarded to the command and its child processes.
	w = newLivenessPipe(t)
	interrupted := inTerminal(t, append([]string{"flease", "acquire", "nightly", "--member", at[0]}, w.script("")...)...)
	lines = w.begin(t)
	interrupted.interrupt()
	waitForEOF(t, lines)
	interrupted.end(t, 2)

	// When the lease is lost, processes that ignore SIGTERM are killed.
	w = newLivenessPipe(t)
	loser := inTerminal(t, append([]string{"flease", "acquire", "nightly", "--member", at[0]}, w.script(`trap "" TERM; `)...)...)
	lines = w.begin(t)
	loser.interrupt()
	members[0].interrupt()
	loser.end(t, 2)
	waitForEOF(t, lines)
	for _, m := range members[1:] {
		m.interrupt()
	}
}
