package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// longPromise is much longer than a test.
const longPromise = 10 * time.Second

// onSocket runs an agent with a manager and a Unix socket.
func onSocket(t *testing.T) (a *Agent, socket string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.Start(manager.Config{Store: mem.New(), Listener: listener})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	client, err := admin.New(admin.Config{Managers: []string{listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // no call is in flight
	if _, err := client.CreateNamespace(t.Context(), admin.Namespace{Name: "presence", Lease: admin.Seconds(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if a, err = New(Config{Managers: []string{listener.Addr().String()}, MaxPromise: longPromise}); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "agent") // the path of a socket has a small maximum length
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "socket")
	unixListener, err := Listen("unix:"+socket, false, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx, unixListener) }()
	t.Cleanup(func() {
		if s := a.only(); s != nil {
			s.owner.EndPromises() // its program has ended
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(dir)
	})
	return a, socket
}

// A remote is a program in another process.
type remote struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	stdin io.WriteCloser
}

func startRemote(t *testing.T, socket, role string, env ...string) *remote {
	t.Helper()
	r := &remote{cmd: exec.CommandContext(t.Context(), os.Args[0])}
	r.cmd.Env = append(os.Environ(), roleVariable+"="+role, socketVariable+"="+socket, "GORACE=atexit_sleep_ms=0")
	r.cmd.Env = append(r.cmd.Env, env...)
	r.cmd.Stderr = os.Stderr
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.lines = bufio.NewScanner(stdout)
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.kill() })
	return r
}

func (r *remote) kill() {
	_ = r.cmd.Process.Kill() // it may have ended
	_ = r.cmd.Wait()
}

// say sends a line, and returns the answer.
func (r *remote) say(t *testing.T, line string) string {
	t.Helper()
	if _, err := fmt.Fprintln(r.stdin, line); err != nil {
		t.Fatal(err)
	}
	return r.line(t)
}

func (r *remote) line(t *testing.T) string {
	t.Helper()
	if !r.lines.Scan() {
		t.Fatalf("the program has ended: %v", r.lines.Err())
	}
	return r.lines.Text()
}

// only returns the only session of an agent; nil if there is none.
func (a *Agent) only() (s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s = range a.sessions {
	}
	return s
}

// A program that is bound to its process loses its leases when the process ends: not when it is paused, and
// not when it executes another program. The promises of its answers do not delay that.
func TestProcessEnds(t *testing.T) {
	a, socket := onSocket(t)
	program := startRemote(t, socket, "process")
	if id, held := program.line(t), program.line(t); held != "held" {
		t.Fatalf("%s: %s", id, held)
	}
	s := a.only()
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := program.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	if answer := program.say(t, "again"); answer != "held" {
		t.Errorf("after a pause: %s", answer)
	}
	if answer := program.say(t, "exec"); answer != "held" {
		t.Errorf("after an exec: %s", answer)
	}
	begin := time.Now()
	program.kill()
	select {
	case <-s.gone:
	case <-time.After(longPromise):
	}
	if took := time.Since(begin); took > longPromise/2 || s.failure != nil || a.only() != nil {
		t.Errorf("the owner was closed after %v: %v", took, s.failure)
	}
}

// A stopped process has not ended.
func TestStoppedProcessHasNotEnded(t *testing.T) {
	_, socket := onSocket(t)
	program := startRemote(t, socket, "process")
	p, err := pidfd(program.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := program.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus // returns when it has stopped
	if _, err := syscall.Wait4(program.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("%v, %v", status, err)
	}
	if hasEnded(p.file.Fd()) {
		t.Error("a stopped process counts as ended")
	}
	if program.kill(); !hasEnded(p.file.Fd()) {
		t.Error("an ended process counts as alive")
	}
}

// Connections of other processes cannot use the id of a program that is bound to its process.
func TestOtherProcess(t *testing.T) {
	_, socket := onSocket(t)
	program := startRemote(t, socket, "process")
	id := program.line(t)
	other := startRemote(t, socket, "other", idVariable+"="+id)
	if answer := other.line(t); !strings.HasPrefix(answer, "403") || !strings.Contains(answer, "only the process that joined") {
		t.Errorf("another process: %s", answer)
	}
}

// A process in another PID namespace has the ID 0.
func TestProcessInAnotherNamespace(t *testing.T) {
	if _, err := pidfd(0); err == nil || !strings.Contains(err.Error(), "another PID namespace") {
		t.Errorf("error %v", err)
	}
}

// A program that is not bound to its process is kept after it: other processes may act for it.
func TestSharedProgram(t *testing.T) {
	a, socket := onSocket(t)
	program := startRemote(t, socket, "shared")
	id := program.line(t)
	program.line(t)
	program.kill()
	other := startRemote(t, socket, "other", idVariable+"="+id)
	if answer := other.line(t); answer != "held" || a.only() == nil {
		t.Errorf("another process: %s", answer)
	}
}

// Over TCP the agent does not know the process.
func TestProcessOverTCP(t *testing.T) {
	a, _ := onSocket(t)
	if _, err := a.newSession(t.Context(), &joinRequest{Namespace: "presence", Addr: "127.0.0.1:1", Process: true}); err == nil || !strings.Contains(err.Error(), "unix: socket") {
		t.Errorf("joined: %v", err)
	}
}
