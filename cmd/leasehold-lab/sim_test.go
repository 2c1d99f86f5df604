package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/server/cli"
)

// TestReplayReplays takes the command that a violation is printed with, and
// sees the same violation happen.
func TestReplayReplays(t *testing.T) {
	var out bytes.Buffer
	args := []string{"sim", "--leases-off", "--owners", "4", "--faults", "default, hostile=0", "--seeds", "40", "--stop-after", "1", "--json"}
	if got := run(t.Context(), args, &out, io.Discard); got != int(cli.StatusViolated) {
		t.Fatalf("exit status %d: no violation to replay\n%s", got, out.String())
	}
	var report struct {
		Failures []struct {
			Seed                        uint64
			Invariant, At, Text, Replay string
		}
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	f := report.Failures[0]
	replay, ok := strings.CutPrefix(f.Replay, "go run ./cmd/leasehold-lab ")
	if !ok {
		t.Fatalf("unexpected command: %s", f.Replay)
	}
	out.Reset()
	if got := run(t.Context(), strings.Fields(replay), &out, io.Discard); got != int(cli.StatusViolated) {
		t.Errorf("%s: exit status %d", replay, got)
	}
	if want := fmt.Sprintf("!!! %s violated at %s: %s\n", f.Invariant, f.At, f.Text); !strings.Contains(out.String(), want) {
		t.Errorf("the replay does not show %q", want)
	}
	want := fmt.Sprintf("VIOLATION  seed %d, %s, at %s\n  %s\n  replay: %s\n\n", f.Seed, f.Invariant, f.At, f.Text, f.Replay)
	if !strings.Contains(out.String(), want) {
		t.Errorf("the replay does not end with\n%s", want)
	}
}

// cancelling is a stream that interrupts the command as soon as it says
// something.
type cancelling struct {
	said   bytes.Buffer
	cancel context.CancelFunc
}

func (c *cancelling) Write(p []byte) (int, error) {
	c.cancel()
	return c.said.Write(p)
}

func TestInterruptedCampaignSaysHowFarItCame(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	errs := &cancelling{cancel: cancel}
	got := run(ctx, []string{"sim", "--seeds", "1000000"}, &out, errs)
	if got != int(cli.StatusInterrupted) {
		t.Errorf("exit status %d, want %d", got, cli.StatusInterrupted)
	}
	if !strings.Contains(out.String(), "; interrupted before the other ") {
		t.Errorf("the summary does not say that it is not complete:\n%s", out.String())
	}
}

func TestInterruptedTraceEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &cancelling{cancel: cancel}
	got := run(ctx, []string{"sim", "--seeds", "1", "--trace", "--duration", "24h"}, out, io.Discard)
	if got != int(cli.StatusInterrupted) {
		t.Errorf("exit status %d, want %d", got, cli.StatusInterrupted)
	}
	if strings.Contains(out.said.String(), "no violation") {
		t.Error("there is a verdict on a world that was not completed")
	}
}

// broken is a stream that nothing can be written to.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestOutputThatFailsIsAnError(t *testing.T) {
	for _, args := range [][]string{
		{"sim", "--seeds", "1"},
		{"sim", "--seeds", "1", "--json"},
		{"sim", "--seeds", "1", "--trace"},
		{"sim", "--list-mutants"},
		{"version"},
	} {
		var errs bytes.Buffer
		got := run(t.Context(), args, broken{}, &errs)
		if got != int(cli.StatusTrouble) || !strings.Contains(errs.String(), "disk full") {
			t.Errorf("%q: exit status %d, %q", args, got, errs.String())
		}
		if strings.Contains(errs.String(), "--help") {
			t.Errorf("%q: blames the flags: %q", args, errs.String())
		}
	}
}
