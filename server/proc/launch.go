package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
)

// A Launch describes a process to start.
type Launch struct {
	Program string
	Args    []string
	Dir     string                // the working directory; empty: ours
	Log     string                // the file that standard error and output are appended to
	Output  func(io.Reader) error // reads standard output to the end; nil: it goes to the log

	// Env is added to [Environment].
	Env []string
	// Supervisor, if set, is a command that runs the program as its child and ends when the child has
	// ended: "leasehold run --".
	Supervisor []string
	// Where, if set, makes the call that starts the process, for example on a thread in another network
	// namespace. That thread must live as long as the process: on Linux a process dies with
	// the thread that started it.
	Where func(start func() error) error
}

// An instance is one operating system process, or two with a supervisor. It cannot outlive us: its standard
// input is a pipe that closes when we end (see [EndWithParent]); on Linux the kernel kills it, too, or the supervisor.
type instance struct {
	cmd        *exec.Cmd
	program    *os.Process // that of cmd, or its child if that is a supervisor
	stdin      io.WriteCloser
	killed     atomic.Bool
	terminated atomic.Bool   // it was sent SIGTERM
	done       chan struct{} // closed when it is gone and its output has been read
	err        error         // why it ended; read after done
}

// EndWithParent ends this process when standard input closes, that is when the parent ends.
func EndWithParent(stdin io.Reader) {
	_, _ = io.Copy(io.Discard, stdin)
	os.Exit(1)
}

// Environment is ours without the variables that configure a leasehold command.
func Environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LEASEHOLD_") })
}

func (l Launch) start() (*instance, error) {
	log, err := os.OpenFile(l.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the child has its own
	line := slices.Concat(l.Supervisor, []string{l.Program}, l.Args)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.SysProcAttr, cmd.Stderr, cmd.Stdout, cmd.Dir = Attributes(), log, log, l.Dir
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
	if l.Where == nil {
		err = cmd.Start()
	} else {
		err = l.Where(cmd.Start)
	}
	if err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	i := &instance{cmd: cmd, program: cmd.Process, stdin: stdin, done: make(chan struct{})}
	go i.reap(l.Output, stdout)
	if len(l.Supervisor) > 0 {
		i.awaitChild()
	}
	return i, nil
}

func (i *instance) reap(output func(io.Reader) error, stdout io.Reader) {
	defer close(i.done)
	var err error
	if output != nil {
		err = output(stdout) // until the last writer is gone
	}
	ended := i.cmd.Wait()
	switch {
	case i.killed.Load():
		ended = nil
	case ended == nil && !i.terminated.Load():
		ended = errors.New("it ended by itself")
	}
	i.err = errors.Join(err, ended)
}

// Tail returns the last lines of a log, for an error message.
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
