package lan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Rootless reports whether this process does not run as root. It can then run a program with [Again].
func Rootless() bool { return os.Geteuid() != 0 }

// Again runs a program, usually this one, as root of new user and network namespaces, and returns its exit
// status. The program ends with this process, and is interrupted when the context ends.
func Again(ctx context.Context, in io.Reader, out, errs io.Writer, program string, args ...string) (status int, err error) {
	runtime.LockOSThread() // the process ends with the thread
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
		Setpgid:     true, // Cancel forwards Ctrl-C: a second one would end it at once
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	err = cmd.Run()
	if exited, ok := errors.AsType[*exec.ExitError](err); ok && exited.ExitCode() > 0 {
		return exited.ExitCode(), nil
	}
	if err != nil {
		err = fmt.Errorf("hosts are network namespaces, which require root or user namespaces: %w", err)
	}
	return 0, err
}
