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
	return fmt.Errorf("%w: it requires Linux on amd64, this is %s on %s", errNoTracing, runtime.GOOS, runtime.GOARCH)
}
