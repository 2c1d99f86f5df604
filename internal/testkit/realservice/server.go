//go:build unix

package realservice

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds the start and the end of a server on a loaded computer.
const patience = time.Minute

// A Server is the process of a database. Its methods are for one goroutine at a time.
type Server struct {
	cmd    *exec.Cmd
	stop   syscall.Signal // what makes it end at once
	exited chan struct{}  // closed when it is gone
	log    tail
}

// start runs a server until the test ends, if it is not stopped before, and waits until it has
// logged that it is ready. It returns nil if the server ended before that.
func start(t testing.TB, cmd *exec.Cmd, stop syscall.Signal, ready string) *Server {
	t.Helper()
	s := &Server{cmd: cmd, stop: stop, exited: make(chan struct{})}
	s.log = tail{ready: []byte(ready), heard: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop(t)
		if t.Failed() {
			t.Logf("%s\n%s", cmd.Path, s.log.String())
		}
	})
	go func() {
		defer close(s.exited)
		_ = cmd.Wait() // how it ended is in its log
	}()
	select {
	case <-s.log.heard:
		return s
	case <-s.exited:
		return nil
	case <-time.After(patience):
		t.Fatalf("%s is not ready in %v:\n%s", cmd.Path, patience, s.log.String())
		return nil
	}
}

// A tail keeps the end of a log, and closes heard when the log says ready.
type tail struct {
	ready []byte
	heard chan struct{}

	mu     sync.Mutex
	text   []byte
	closed bool
}

const keptBytes = 4000 // of a log, to show when a test fails

func (l *tail) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, text...)
	if !l.closed && bytes.Contains(l.text, l.ready) {
		l.closed = true
		close(l.heard)
	}
	l.text = l.text[max(0, len(l.text)-keptBytes):]
	return len(text), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// Stop ends the server at once, and returns when it is gone. It may be called again.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	_ = s.cmd.Process.Signal(s.stop) // an error means that it is gone already
	select {
	case <-s.exited:
	case <-time.After(patience):
		t.Errorf("%s does not end in %v:\n%s", s.cmd.Path, patience, s.log.String())
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
}

// directory makes a directory with a path that is short enough for a socket.
func directory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "leasehold-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // what is left is in the temporary directory
	return dir
}

// skip ends a test for want of a program.
func skip(t testing.TB, program, debian string) {
	t.Helper()
	t.Skipf("SKIPPED, NOT TESTED: there is no %s here; run make services as root where there is apt-get, or install what Debian calls %s", program, debian)
}
