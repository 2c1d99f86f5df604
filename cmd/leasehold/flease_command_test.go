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

// A witness is a pipe into which a command and what it has started can write, and
// which ends when none of them is left.
type witness struct {
	path string
	from chan *os.File
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{path: filepath.Join(t.TempDir(), "pipe"), from: make(chan *os.File, 1)}
	if err := syscall.Mkfifo(w.path, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		f, _ := os.Open(w.path) // waits until somebody is there to write
		w.from <- f
	}()
	return w
}

// script runs a shell in a shell, which ignores SIGTERM, writes a line when it has
// begun, and ends on its own only after the test.
func (w *witness) script(trap string) []string {
	return []string{"--", "sh", "-c", trap + `sh -c '` + trap + `exec >"$0"; echo begun; sleep 100; echo ended' ` + w.path + `; true`}
}

// begin waits until the command has begun.
func (w *witness) begin(t *testing.T) *bufio.Reader {
	t.Helper()
	var f *os.File
	select {
	case f = <-w.from:
	case <-time.After(time.Minute):
		t.Fatal("the command does not begin")
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := f.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(f)
	if line, err := lines.ReadString('\n'); line != "begun\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return lines
}

// end waits until nobody is left who could write.
func end(t *testing.T, lines *bufio.Reader) {
	t.Helper()
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("after the lease is lost, the command goes on: %q, %v", rest, err)
	}
}

// Whoever holds a lease through a command, and is killed, takes the command and
// what it has started with him: the next one has the lease at once.
func TestFleaseCommandDiesWithItsHolder(t *testing.T) {
	members, at := group(t)
	w := newWitness(t)
	holder := exec.Command("leasehold", append([]string{"flease", "acquire", "nightly", "--member", at[0]}, w.script("")...)...) // TestMain has put it on the path
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	lines := w.begin(t)
	_ = holder.Process.Kill()
	_ = holder.Wait() // it was killed
	end(t, lines)
	next := inTerminal(t, "flease", "acquire", "nightly", "--member", at[1], "--", "true")
	next.end(t, 0)

	// An interrupt reaches all of them, and is no more than that.
	w = newWitness(t)
	polite := inTerminal(t, append([]string{"flease", "acquire", "nightly", "--member", at[0]}, w.script("")...)...)
	lines = w.begin(t)
	polite.interrupt()
	end(t, lines)
	polite.end(t, 2)

	// When the lease is lost, nobody is asked.
	w = newWitness(t)
	loser := inTerminal(t, append([]string{"flease", "acquire", "nightly", "--member", at[0]}, w.script(`trap "" TERM; `)...)...)
	lines = w.begin(t)
	loser.interrupt()
	members[0].interrupt()
	loser.end(t, 2)
	end(t, lines)
	for _, m := range members[1:] {
		m.interrupt()
	}
}
