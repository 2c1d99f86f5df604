//go:build unix

package main

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// guardScript waits for the end of its input, which is the end of whoever had the
// other end, and kills its process group.
const guardScript = `trap '' HUP INT TERM; echo; read -r line; kill -KILL 0`

// A processGroup is a command and what it starts. Its leader is a guard of ours,
// which kills all of it when this process dies in whatever way: the lease is then
// free, and nothing may go on that relied on it. And as long as the leader is
// there, no other group can have its number.
type processGroup struct {
	guard *exec.Cmd
	input io.Closer
}

func newProcessGroup() (*processGroup, error) {
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
		return nil, fmt.Errorf("a command needs a shell that watches over it: %w", err)
	}
	g := &processGroup{guard, input}
	if _, err := io.ReadFull(output, make([]byte, 1)); err != nil { // then it ignores signals
		g.dismiss()
		return nil, fmt.Errorf("the shell that is to watch over a command has ended: %w", err)
	}
	return g, nil
}

// attributes make a process part of the group.
func (g *processGroup) attributes() *syscall.SysProcAttr {
	return withParent(&syscall.SysProcAttr{Setpgid: true, Pgid: g.guard.Process.Pid})
}

// signal sends a signal to all of the group. The guard ignores all but SIGKILL.
func (g *processGroup) signal(s syscall.Signal) {
	_ = syscall.Kill(-g.guard.Process.Pid, s) // the guard is there, if only to be waited for
}

// dismiss ends the guard, and leaves the others alone.
func (g *processGroup) dismiss() {
	_ = g.guard.Process.Kill() // or it has been killed
	_ = g.guard.Wait()         // by us
	_ = g.input.Close()
}
