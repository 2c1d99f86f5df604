// Package processgroup runs a command and all that it starts as one process group,
// which can be signalled as a whole and does not outlive this process.
package processgroup

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// A Command is a running command with its process group.
type Command struct {
	group *group
	ended chan error
}

// Start starts a command in a process group of its own. Env is added to the
// environment of this process.
func Start(line, env []string, in io.Reader, out, errs io.Writer) (*Command, error) {
	group, err := newGroup()
	if err != nil {
		return nil, err
	}
	c := exec.Command(line[0], line[1:]...)
	c.Stdin, c.Stdout, c.Stderr = in, out, errs
	c.Env = append(os.Environ(), env...)
	c.WaitDelay = time.Second
	c.SysProcAttr = group.attributes()
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		// Linux kills the command when the thread ends that has started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			ended <- c.Wait()
		}
	}()
	if err := <-started; err != nil {
		group.dismiss()
		return nil, err
	}
	return &Command{group, ended}, nil
}

// Ended receives the result of [exec.Cmd.Wait] when the command has ended, once.
func (c *Command) Ended() <-chan error { return c.ended }

// Terminate sends SIGTERM to the group.
func (c *Command) Terminate() { c.group.signal(syscall.SIGTERM) }

// Kill kills the group, and waits for the command to end.
func (c *Command) Kill() {
	c.group.signal(syscall.SIGKILL)
	<-c.ended
}

// Close is called when the command has ended. What it has left behind runs on.
func (c *Command) Close() { c.group.dismiss() }
