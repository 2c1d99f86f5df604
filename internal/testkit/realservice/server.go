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

// patience is the timeout of start and stop on a loaded machine.
const patience = time.Minute

// A Server is the process of a database. Its methods are for one goroutine at a time.
type Server struct {
	cmd    *exec.Cmd
	stop   syscall.Signal // ends it at once
	exited chan struct{}  // closed when it has exited
	log    tail
}

// start starts a server that runs until Stop or the end of the test, and waits for its log message ready.
// It returns nil if the server exits before that.
func start(t testing.TB, cmd *exec.Cmd, stop syscall.Signal, ready string) *Server {
	t.Helper()
	s := &Server{cmd: cmd, stop: stop, exited: make(chan struct{})}
	s.log = tail{ready: []byte(ready), found: make(chan struct{})}
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
		_ = cmd.Wait() // the log has the reason
	}()
	select {
	case <-s.log.found:
		return s
	case <-s.exited:
		return nil
	case <-time.After(patience):
		t.Fatalf("%s is not ready after %v:\n%s", cmd.Path, patience, s.log.String())
		return nil
	}
}

// A tail keeps the end of a log, and closes found when the log contains ready.
type tail struct {
	ready []byte
	found chan struct{}

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
		close(l.found)
	}
	l.text = l.text[max(0, len(l.text)-keptBytes):]
	return len(text), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// Stop stops the server and waits for its exit. It may be called again.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	_ = s.cmd.Process.Signal(s.stop) // an error means that it has exited
	select {
	case <-s.exited:
	case <-time.After(patience):
		t.Errorf("%s has not exited after %v:\n%s", s.cmd.Path, patience, s.log.String())
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
}

// directory creates a directory with a path short enough for a Unix socket.
func directory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "leasehold-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // the rest stays in the temporary directory
	return dir
}

// skip skips a test if a program is not installed.
func skip(t testing.TB, program, debian string) {
	t.Helper()
	t.Skipf("SKIPPED, NOT TESTED: %s is not installed; run make services as root on a system with apt-get, or install the Debian package %s", program, debian)
}
