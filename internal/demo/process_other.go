//go:build !unix

package demo

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
