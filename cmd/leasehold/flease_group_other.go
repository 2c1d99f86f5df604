//go:build !unix

package main

import (
	"errors"
	"syscall"
)

// A processGroup is a command and what it starts. This system has none that end
// when we do.
type processGroup struct{}

func newProcessGroup() (*processGroup, error) {
	return nil, errors.New("on this system a command would run on when this one is killed, and the lease be free: " +
		"hold the lease without a command, or use package flease")
}

func (*processGroup) attributes() *syscall.SysProcAttr { return nil }
func (*processGroup) signal(syscall.Signal)            {}
func (*processGroup) dismiss()                         {}
