//go:build unix

package realservice

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a server may take to start or to end, on a computer that
// has other things to do. It is spent only when a test fails.
const patience = time.Minute

// A Server is the process of a database. Its methods are for one goroutine at a
// time.
type Server struct {
	cmd    *exec.Cmd
	stop   syscall.Signal // what makes it end at once
	exited chan struct{}  // closed when it is gone

	mu   sync.Mutex
	last []string // what it has said of late
}

// keptLines is how much of a server's log is shown when a test fails.
const keptLines = 40

// start runs a server until the test ends, if it is not stopped before, and
// waits until it has logged that it is ready. It returns nil if the server ended
// before that.
func start(t testing.TB, cmd *exec.Cmd, stop syscall.Signal, ready string) *Server {
	t.Helper()
	log, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	s := &Server{cmd: cmd, stop: stop, exited: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop(t)
		if t.Failed() {
			t.Logf("%s\n%s", cmd.Path, s.said())
		}
	})
	heard := make(chan struct{})
	go func() {
		defer close(s.exited)
		s.listen(log, ready, sync.OnceFunc(func() { close(heard) }))
		_ = cmd.Wait() // how it ended is in its log
	}()
	select {
	case <-heard:
		return s
	case <-s.exited:
		return nil
	case <-time.After(patience):
		t.Fatalf("%s is not ready in %v:\n%s", cmd.Path, patience, s.said())
		return nil
	}
}

// listen reads a log to its end, and calls heard when it says ready.
func (s *Server) listen(log io.Reader, ready string, heard func()) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		s.mu.Lock()
		if s.last = append(s.last, lines.Text()); len(s.last) > keptLines {
			s.last = s.last[1:]
		}
		s.mu.Unlock()
		if strings.Contains(lines.Text(), ready) {
			heard()
		}
	}
	_, _ = io.Copy(io.Discard, log) // after a line that was too long: the server must not wait for us
}

func (s *Server) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.last, "\n")
}

// Stop ends the server at once, and returns when it is gone. It may be called
// again.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	_ = s.cmd.Process.Signal(s.stop) // an error means that it is gone already
	select {
	case <-s.exited:
	case <-time.After(patience):
		t.Errorf("%s does not end in %v:\n%s", s.cmd.Path, patience, s.said())
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
}

// directory makes a directory for a server's files, short enough for the path of
// a socket.
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
