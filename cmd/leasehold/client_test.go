package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/server/cli"
)

func TestInterruptedRequest(t *testing.T) {
	f := startFake(t, &fakeManager{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := run(ctx, []string{"status", "--managers", f.addr}, io.Discard, io.Discard); got != int(cli.StatusInterrupted) {
		t.Errorf("exit status %d, want %d", got, cli.StatusInterrupted)
	}
}

// TestFailedOutputIsAnError checks that every command fails if it cannot write its output, without a hint at its help.
func TestFailedOutputIsAnError(t *testing.T) {
	f := startFake(t, &fakeManager{events: events()})
	for _, args := range [][]string{
		{"namespace", "create", "presence"},
		{"namespace", "list"},
		{"namespace", "show", "presence"},
		{"status"},
		{"owner", "list"},
		{"range", "list", "--json"},
		{"key", "find", "x"},
		{"key", "history", "x"},
		{"manager", "list"},
		{"events", "--follow"},
	} {
		var errs bytes.Buffer
		got := run(t.Context(), append(args, "--managers", f.addr), broken{}, &errs)
		if got != int(cli.StatusTrouble) || !strings.Contains(errs.String(), "disk full") || strings.Contains(errs.String(), "--help") {
			t.Errorf("%q: exit status %d, %q", args, got, errs.String())
		}
	}
}

// broken is a stream whose writes fail.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }
