package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// childPoll is the interval at which the child of a supervisor that starts is searched.
const childPoll = 5 * time.Millisecond

// awaitChild waits until the supervisor has started its child, or has ended.
func (i *instance) awaitChild() {
	for {
		if child, err := childOf(i.cmd.Process.Pid); err == nil {
			if i.program, err = os.FindProcess(child); err == nil {
				return
			}
		}
		select {
		case <-i.done:
			return
		case <-time.After(childPoll):
		}
	}
}

// childOf returns the process ID of a child, from /proc.
func childOf(parent int) (int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the kernel
		if err == nil && parentIn(text) == parent {
			return strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}
	return 0, fmt.Errorf("process %d has no child", parent)
}

// parentIn returns the parent in a stat file of /proc: "PID (NAME) STATE PARENT ...".
func parentIn(stat []byte) int {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}

// kill kills the program.
func (i *instance) kill() { _ = i.program.Kill() } // an error means that it is gone already

// killAll kills the program and its supervisor, which may wait for managers that are gone.
func (i *instance) killAll() { _ = errors.Join(i.program.Kill(), i.cmd.Process.Kill()) }
