//go:build unix

package processgroup

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// guardScript waits for the end of its input, which this process holds open, and
// then kills its process group.
const guardScript = `trap '' HUP INT TERM; echo; read -r line; kill -KILL 0`

// A group is the process group of a command. Its leader is a guard, a shell that
// kills the whole group when this process dies, for whatever reason. While the
// guard lives, no other group can get its number.
type group struct {
	guard *exec.Cmd
	input io.Closer
}

func newGroup() (*group, error) {
	guard := exec.Command("sh", "-c", guardScript)
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := guard.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := guard.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := guard.Start(); err != nil {
		return nil, fmt.Errorf("the shell that guards the process group of a command does not start: %w", err)
	}
	g := &group{guard, input}
	if _, err := io.ReadFull(output, make([]byte, 1)); err != nil { // then it ignores signals
		g.dismiss()
		return nil, fmt.Errorf("the shell that guards the process group of a command has ended: %w", err)
	}
	return g, nil
}

// attributes make a process part of the group.
func (g *group) attributes() *syscall.SysProcAttr {
	return withParent(&syscall.SysProcAttr{Setpgid: true, Pgid: g.guard.Process.Pid})
}

// signal sends a signal to all of the group. The guard ignores all but SIGKILL.
func (g *group) signal(s syscall.Signal) {
	_ = syscall.Kill(-g.guard.Process.Pid, s) // the guard is there, if only to be waited for
}

// dismiss ends the guard, and not the others.
func (g *group) dismiss() {
	_ = g.guard.Process.Kill() // or it has been killed
	_ = g.guard.Wait()         // by us
	_ = g.input.Close()
}
