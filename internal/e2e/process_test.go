//go:build unix

package e2e

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/child"
)

// patience is how long an event may take that should take a second or two, on
// a computer that has other things to do. It is spent only when a test fails.
const patience = 45 * time.Second

// slack is added to times that the protocol promises, for the same reason.
const slack = 15 * time.Second

// errNotYet is for what is still to come and needs no explanation.
var errNotYet = errors.New("not yet")

// A launch says what to start.
type launch struct {
	program string
	args    []string
	env     []string // added to ours
	dir     string   // where it runs; ours if empty
	log     string   // the file for what it says; it is added to
	talk    bool     // it is talked to: its standard input and output are pipes
}

// A process is a child of this one.
type process struct {
	cmd    *exec.Cmd
	log    string
	stdin  io.WriteCloser // if it is talked to
	stdout io.Reader
	done   chan struct{} // closed when it is gone and no longer a zombie
}

// start starts a process that ends with the test at the latest. If the test
// fails, the end of its log is printed.
func (l launch) start(t *testing.T) *process {
	t.Helper()
	log, err := os.OpenFile(l.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the child has its own
	cmd := exec.Command(l.program, l.args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, l.dir
	cmd.Env = append(child.Environment(), l.env...)
	cmd.SysProcAttr = attributes()
	p := &process{cmd: cmd, log: l.log, done: make(chan struct{})}
	if l.talk {
		stdout := p.pipes(t)
		defer stdout.Close() //nolint:errcheck // the child has its own
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // the state says how it ended
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s %s\n%s", l.program, strings.Join(l.args, " "), child.Tail(l.log))
		}
	})
	return p
}

// pipes connects us with the process, and returns its end of its output. That
// pipe is not one of package exec's, which Wait closes with what has not been
// read yet.
func (p *process) pipes(t *testing.T) io.Closer {
	t.Helper()
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() }) // what is left in it is of no interest
	p.cmd.Stdout, p.stdin, p.stdout = w, stdin, r
	return w
}

// kill is kill -9. It returns when the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error means that it is gone already
	<-p.done
}

// signal sends a signal to a process that must still be there.
func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("signal %v: %v", s, err)
	}
}

// exit waits until the process has ended by itself, and returns its status.
func (p *process) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("it has not ended after %v: %v", patience, p.cmd)
		return -1
	}
}

// alive reports whether the process has not ended.
func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// said returns all that was logged.
func (p *process) said(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// run runs leasehold to its end, and returns its exit status and what it wrote.
func run(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errs strings.Builder
	cmd := exec.CommandContext(ctx, leaseholdProgram, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &errs, t.TempDir()
	cmd.Env, cmd.SysProcAttr = child.Environment(), attributes()
	var exited *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exited) {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("leasehold %v has not ended after %v; it said %s", args, patience, errs.String())
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// eventually calls try until it returns nil, and fails the test if that takes
// too long.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	within(t, patience, what, try)
}

// within is eventually with a time of its own.
func within(t *testing.T, limit time.Duration, what string, try func() error) {
	t.Helper()
	late := time.After(limit)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-late:
			t.Fatalf("%s: not within %v: %v", what, limit, err)
		case <-again.C:
		}
	}
}
