package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/examples/livemesh/demo"
)

// TestInterrupted: a demo that is interrupted before it is ready fails with only that error,
// and leaves no files.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	root := newRoot()
	root.SetArgs([]string{"demo"})
	root.SetOut(io.Discard)
	if err := root.ExecuteContext(ctx); !errors.Is(err, demo.ErrInterrupted) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want %v", err, demo.ErrInterrupted)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}
