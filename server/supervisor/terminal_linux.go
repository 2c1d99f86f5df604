package supervisor

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A terminal is the controlling terminal of the supervisor; nil if there is none.
type terminal struct {
	file  *os.File
	group int  // process group of the supervisor
	input bool // it is the standard input, which a shell script does not give to a job in the background
}

func openTerminal() *terminal {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	_, err = unix.IoctlGetInt(0, unix.TIOCGPGRP) // succeeds only for the controlling terminal
	return &terminal{f, unix.Getpgrp(), err == nil}
}

func (t *terminal) close() {
	if t != nil {
		_ = t.file.Close() // nothing was written
	}
}

// attributes put the child into a process group of its own, in the foreground if the supervisor is.
func (t *terminal) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if t.ours() {
		a.Foreground, a.Ctty = true, int(t.file.Fd())
	}
	return a
}

// ours reports whether the child gets the terminal without a request. A script and its jobs are one process
// group, so it is not enough that the supervisor is in the foreground.
func (t *terminal) ours() bool { return t != nil && t.input && t.foreground() == t.group }

// foreground returns the process group in the foreground; 0 if the terminal has hung up.
func (t *terminal) foreground() int {
	group, err := unix.IoctlGetInt(int(t.file.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

func (t *terminal) set(group int) {
	_ = unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, group) // an error: it has hung up
}

// take returns the terminal from the child to the supervisor, for the shell. In the background neither has it.
func (t *terminal) take(child int) {
	if t != nil && t.foreground() == child {
		t.set(t.group)
	}
}

// childStopped handles a stop of the child by the terminal. A stop by another process, SIGSTOP, is left to
// that.
func (t *terminal) childStopped(child int, why syscall.Signal) {
	switch {
	case t == nil || why == syscall.SIGSTOP:
	case why != syscall.SIGTSTP && t.foreground() == t.group:
		t.set(child) // the shell has moved the job to the foreground
		_ = syscall.Kill(-child, syscall.SIGCONT)
	case unix.Getpid() == 1 || isSessionLeader():
		_ = syscall.Kill(-child, syscall.SIGCONT) // no shell would continue it
	default:
		t.take(child)
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // the shell detects that the job has stopped
	}
}

func isSessionLeader() bool {
	session, err := unix.Getsid(0)
	return err == nil && session == os.Getpid()
}

// resume continues the child when the supervisor is continued, in the foreground if the supervisor is.
func (t *terminal) resume(child int) {
	if t.ours() {
		t.set(child)
	}
	_ = syscall.Kill(-child, syscall.SIGCONT) // an error: it has ended
}
