//go:build unix

package proc

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

const (
	// CanPause reports whether processes can be paused. One that is paused when we die is
	// resumed by the system, since its process group is orphaned, and ends.
	CanPause     = true
	pauseSignal  = syscall.SIGSTOP
	resumeSignal = syscall.SIGCONT
)

// guardScript waits for the end of its input, which this process holds open, and then kills
// its process group.
const guardScript = `trap '' HUP INT TERM; echo; read -r line; kill -KILL 0`

// A guard is the leader of a process group: a shell that kills the whole group when this
// process dies, for whatever reason. While it lives, no other group can get its number.
type guard struct {
	cmd   *exec.Cmd
	input io.Closer
}

func newGuard() (*guard, error) {
	cmd := exec.Command("sh", "-c", guardScript)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("the shell that guards the process group of a command does not start: %w", err)
	}
	g := &guard{cmd, input}
	if _, err := io.ReadFull(output, make([]byte, 1)); err != nil { // then it ignores signals
		g.end()
		return nil, fmt.Errorf("the shell that guards the process group of a command has ended: %w", err)
	}
	return g, nil
}

// attributes make a process part of the group.
func (g *guard) attributes() *syscall.SysProcAttr {
	a := Attributes()
	a.Pgid = g.cmd.Process.Pid
	return a
}

// signal sends a signal to the whole group. The guard ignores all but SIGKILL.
func (g *guard) signal(s syscall.Signal) {
	_ = syscall.Kill(-g.cmd.Process.Pid, s) // the guard exists until it is waited for
}

// end ends the guard, and not the others.
func (g *guard) end() {
	_ = g.cmd.Process.Kill() // or it has been killed
	_ = g.cmd.Wait()         // by us
	_ = g.input.Close()
}
