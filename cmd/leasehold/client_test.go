package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/server/cli"
)

func TestInterruptedQuestion(t *testing.T) {
	f := startFake(t, &fakeManager{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := run(ctx, []string{"status", "--managers", f.addr}, io.Discard, io.Discard); got != int(cli.StatusInterrupted) {
		t.Errorf("exit status %d, want %d", got, cli.StatusInterrupted)
	}
}

// TestAnswersThatCannotBeWritten are an error of every command.
func TestAnswersThatCannotBeWritten(t *testing.T) {
	f := startFake(t, &fakeManager{events: events()})
	for _, args := range [][]string{
		{"namespace", "create", "presence"},
		{"namespace", "list"},
		{"namespace", "show", "presence"},
		{"status"},
		{"owners"},
		{"ranges", "--json"},
		{"lookup", "x"},
		{"history", "x"},
		{"member", "list"},
		{"watch"},
	} {
		var errs bytes.Buffer
		got := run(t.Context(), append(args, "--managers", f.addr), broken{}, &errs)
		if got != int(cli.StatusTrouble) || !strings.Contains(errs.String(), "disk full") || strings.Contains(errs.String(), "--help") {
			t.Errorf("%q: exit status %d, %q", args, got, errs.String())
		}
	}
}
