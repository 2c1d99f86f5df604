// Package child runs processes that end with this one, and hurts them: for the demo, and for
// tests.
package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
)

// A process is a child of this one. It cannot outlive us: its standard input is
// a pipe whose other end only we have, and it ends when that closes (see
// [EndWithParent]); on Linux the kernel kills it as well.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	killed atomic.Bool
	asked  atomic.Bool   // to end
	done   chan struct{} // closed when it is gone and all that it wrote is read
	err    error         // how it ended, or what went wrong with its output; read after done
}

// EndWithParent returns when standard input closes, that is when the parent
// that holds the other end has died, and ends the process.
func EndWithParent(stdin io.Reader) {
	_, _ = io.Copy(io.Discard, stdin)
	os.Exit(1)
}

// A Launch says what to start.
type Launch struct {
	Program string
	Args    []string
	Log     string                // the file for what it says; it is added to
	Output  func(io.Reader) error // reads its standard output to the end; nil if that goes to the log too

	// Env is added to [Environment].
	Env []string
	// Where, if set, runs the call that starts the process: on a thread whose network
	// namespace it is to have, say. That thread must live as long as the process may:
	// on Linux it dies with the thread that started it.
	Where func(start func() error) error
}

// start starts a process.
func (l Launch) start() (*process, error) {
	log, err := os.OpenFile(l.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the child has its own
	cmd := exec.Command(l.Program, l.Args...)
	cmd.SysProcAttr, cmd.Stderr, cmd.Stdout = attributes(), log, log
	cmd.Env = append(Environment(), l.Env...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	var stdout io.Reader
	if l.Output != nil {
		cmd.Stdout = nil
		if stdout, err = cmd.StdoutPipe(); err != nil {
			return nil, errors.Join(err, stdin.Close())
		}
	}
	where := l.Where
	if where == nil {
		where = func(start func() error) error { return start() }
	}
	if err := where(cmd.Start); err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	p := &process{cmd: cmd, stdin: stdin, done: make(chan struct{})}
	go p.reap(l.Output, stdout)
	return p, nil
}

// Environment is ours without what would tell a child to be configured in some
// other way than its arguments say.
func Environment() []string {
	var kept []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LEASEHOLD_") {
			kept = append(kept, v)
		}
	}
	return kept
}

func (p *process) reap(output func(io.Reader) error, stdout io.Reader) {
	defer close(p.done)
	var err error
	if output != nil {
		err = output(stdout) // until the last writer is gone
	}
	ended := p.cmd.Wait()
	switch {
	case p.killed.Load():
		ended = nil
	case ended == nil && !p.asked.Load():
		ended = errors.New("it ended by itself")
	}
	p.err = errors.Join(err, ended)
}

// kill is kill -9. It returns when the process is gone.
func (p *process) kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill() // an error means that it is gone already
	<-p.done
}

// finish asks the process to end, and waits until it is gone or the context
// ends.
func (p *process) finish(ctx context.Context) error {
	p.asked.Store(true)
	if err := terminate(p.cmd.Process); err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Tail returns the last lines of a log, for an error.
func Tail(path string) string {
	const most = 2000
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was only read
	if end, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, end-most), io.SeekStart)
	}
	text, _ := io.ReadAll(io.LimitReader(f, most))
	return fmt.Sprintf("the last lines of %s:\n%s", path, strings.ToValidUTF8(string(text), "?"))
}
