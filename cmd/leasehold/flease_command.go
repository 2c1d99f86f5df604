package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// A fleaseCommand is what runs while a lease is held, and all that it starts;
// nothing, if it is nil.
type fleaseCommand struct {
	group *processGroup
	ended chan error // has how it ended
}

// startFleaseCommand starts a command. What it starts belongs to its group, which
// does not outlive this process.
func startFleaseCommand(line, env []string, in io.Reader, out, errs io.Writer) (*fleaseCommand, error) {
	group, err := newProcessGroup()
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
		// The kernel kills the command when the thread ends that has started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			ended <- exitStatus(c.Wait())
		}
	}()
	if err := <-started; err != nil {
		group.dismiss()
		return nil, err
	}
	return &fleaseCommand{group, ended}, nil
}

// done has how the command ended; never anything, if there is none.
func (c *fleaseCommand) done() <-chan error {
	if c == nil {
		return nil
	}
	return c.ended
}

// terminate asks the command and what it has started to end.
func (c *fleaseCommand) terminate() { c.group.signal(syscall.SIGTERM) }

// kill ends the command and what it has started, and waits for the command.
func (c *fleaseCommand) kill() {
	c.group.signal(syscall.SIGKILL)
	<-c.ended
}

// forget is called when the command has ended. What it has left behind runs on.
func (c *fleaseCommand) forget() {
	if c != nil {
		c.group.dismiss()
	}
}

// exitStatus is how a command ended.
func exitStatus(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return status(exit.ExitCode())
	}
	return err
}
