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

// eventTimeout limits events that take a second or two, with a margin for a loaded
// machine. Only failing tests wait for it.
const eventTimeout = 45 * time.Second

// slack is the margin for a loaded machine that is added to bounds of the protocol.
const slack = 15 * time.Second

// errNotYet is an error of eventually without details.
var errNotYet = errors.New("not yet")

// A launch is the command of a process.
type launch struct {
	program string
	args    []string
	env     []string // added to the test's
	dir     string   // working directory; "": the test's
	log     string   // the file to which its output is appended
	piped   bool     // standard input and output are pipes
}

// A process is a child of this one.
type process struct {
	*proc.Process
	stdout *io.PipeReader // if piped
}

// start starts a process, which is killed when the test ends. The end of its log is printed
// if the test fails.
func (l launch) start(t *testing.T) *process {
	t.Helper()
	p := &process{Process: &proc.Process{Name: filepath.Base(l.program), Launch: proc.Launch{
		Program: l.program, Args: l.args, Env: l.env, Dir: l.dir, Log: l.log,
	}}}
	if l.piped {
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

// kill sends SIGKILL, and returns when the process has ended.
func (p *process) kill() {
	if p.stdout != nil {
		_ = p.stdout.Close() // the rest of the output is not needed
	}
	p.Kill()
}

// signal sends a signal to a process that must be running.
func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Signal(s); err != nil {
		t.Fatalf("signal %v: %v", s, err)
	}
}

// exit waits until the process has exited, and returns its status.
func (p *process) exit(t *testing.T) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	status, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// output returns the process's log.
func (p *process) output(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.Launch.Log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// freeAddr returns a free loopback address that no other test uses.
func freeAddr(t *testing.T) string {
	t.Helper()
	addrs, err := proc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return addrs[0]
}

// run runs leasehold to its end, and returns its exit status and output.
func run(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
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
		t.Fatalf("leasehold %v has not exited after %v: %s", args, eventTimeout, errs.String())
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// eventually calls try until it returns nil, and fails the test after eventTimeout.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	within(t, eventTimeout, what, try)
}

// within is eventually with another timeout.
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
			t.Fatalf("%s: timeout after %v: %v", what, limit, err)
		case <-again.C:
		}
	}
}
