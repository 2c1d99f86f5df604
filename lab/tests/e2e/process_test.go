//go:build unix

package e2e

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/server/proc"
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
	*proc.Process
	stdout *io.PipeReader // if it is talked to
}

// start starts a process that ends with the test at the latest. If the test
// fails, the end of its log is printed.
func (l launch) start(t *testing.T) *process {
	t.Helper()
	p := &process{Process: &proc.Process{Name: filepath.Base(l.program), Launch: proc.Launch{
		Program: l.program, Args: l.args, Env: l.env, Dir: l.dir, Log: l.log,
	}}}
	if l.talk {
		var to *io.PipeWriter
		p.stdout, to = io.Pipe()
		p.Launch.Output = func(from io.Reader) error {
			_, err := io.Copy(to, from)
			return errors.Join(err, to.Close())
		}
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		p.Close()
		if t.Failed() {
			t.Logf("%s %s\n%s", l.program, strings.Join(l.args, " "), proc.Tail(l.log))
		}
	})
	return p
}

// kill is kill -9. It returns when the process is gone.
func (p *process) kill() {
	if p.stdout != nil {
		_ = p.stdout.Close() // what is left in it is of no interest
	}
	p.Kill()
}

// signal sends a signal to a process that must still be there.
func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Signal(s); err != nil {
		t.Fatalf("signal %v: %v", s, err)
	}
}

// exit waits until the process has ended by itself, and returns its status.
func (p *process) exit(t *testing.T) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	status, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// said returns all that was logged.
func (p *process) said(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.Launch.Log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// freeAddr returns an address on loopback that nobody listens on, and that no other test gets.
func freeAddr(t *testing.T) string {
	t.Helper()
	addrs, err := proc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return addrs[0]
}

// run runs leasehold to its end, and returns its exit status and what it wrote.
func run(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errs strings.Builder
	cmd := exec.CommandContext(ctx, leaseholdProgram, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &errs, t.TempDir()
	cmd.Env, cmd.SysProcAttr = proc.Environment(), proc.Attributes()
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
