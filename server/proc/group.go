package proc

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// A Group is a running command and all processes that it starts. It can be signalled as a whole
// and does not outlive this process.
type Group struct {
	guard *guard
	ended chan error
}

// StartGroup starts a command in a new process group. Env is added to the environment of
// this process.
func StartGroup(line, env []string, in io.Reader, out, errs io.Writer) (*Group, error) {
	guard, err := newGuard()
	if err != nil {
		return nil, err
	}
	c := exec.Command(line[0], line[1:]...)
	c.Stdin, c.Stdout, c.Stderr = in, out, errs
	c.Env = append(os.Environ(), env...)
	c.WaitDelay = time.Second
	c.SysProcAttr = guard.attributes()
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
		guard.end()
		return nil, err
	}
	return &Group{guard, ended}, nil
}

// Ended receives the result of [exec.Cmd.Wait] when the command has ended, once.
func (g *Group) Ended() <-chan error { return g.ended }

// Terminate sends SIGTERM to the group.
func (g *Group) Terminate() { g.guard.signal(syscall.SIGTERM) }

// Kill kills the group, and waits for the command to end.
func (g *Group) Kill() {
	g.guard.signal(syscall.SIGKILL)
	<-g.ended
}

// Close is called when the command has ended. Processes that it has left behind continue.
func (g *Group) Close() { g.guard.end() }
