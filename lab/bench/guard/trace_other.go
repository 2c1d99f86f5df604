//go:build !(linux && amd64)

package main

import (
	"fmt"
	"runtime"
)

func thisThread() int { return 0 }

func traceMe() error { return unsupported() }

func pin() (func(), error) { return nil, unsupported() }

func trace(int, int) (int, error) { return 0, unsupported() }

func unsupported() error {
	return fmt.Errorf("%w: this is %s on %s, and not Linux on amd64", errNoTracing, runtime.GOOS, runtime.GOARCH)
}
