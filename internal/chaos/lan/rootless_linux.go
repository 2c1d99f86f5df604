package lan

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Rootless says whether this process is not root, and may still be that of namespaces of its
// own: of users and of the network, in which all others can be made.
func Rootless() bool { return os.Geteuid() != 0 }

// Again is a command that runs a program, which is this one, as the root of such namespaces:
// who is nobody but its user to everybody else. It ends with us.
//
// What runs it must keep its thread until it has ended.
func Again(ctx context.Context, program string, args ...string) *exec.Cmd {
	runtime.LockOSThread()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
		Setpgid:     true, // Ctrl-C is for us, and we pass it on: a second one would end it at once
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it has something to say
	return cmd
}
