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

// TestReplayRepeatsViolation checks that the replay command of a violation repeats it.
func TestReplayRepeatsViolation(t *testing.T) {
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
		t.Errorf("the replay does not contain %q", want)
	}
	want := fmt.Sprintf("VIOLATION  seed %d, %s, at %s\n  %s\n  replay: %s\n\n", f.Seed, f.Invariant, f.At, f.Text, f.Replay)
	if !strings.Contains(out.String(), want) {
		t.Errorf("the replay does not end with\n%s", want)
	}
}

// A cancellingWriter cancels the command's context at each write.
type cancellingWriter struct {
	output bytes.Buffer
	cancel context.CancelFunc
}

func (c *cancellingWriter) Write(p []byte) (int, error) {
	c.cancel()
	return c.output.Write(p)
}

func TestInterruptedCampaignReportsProgress(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	errs := &cancellingWriter{cancel: cancel}
	got := run(ctx, []string{"sim", "--seeds", "1000000"}, &out, errs)
	if got != int(cli.StatusInterrupted) {
		t.Errorf("exit status %d, want %d", got, cli.StatusInterrupted)
	}
	if !strings.Contains(out.String(), "; interrupted before the other ") {
		t.Errorf("the summary does not state that the campaign is incomplete:\n%s", out.String())
	}
}

func TestInterruptedTraceEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &cancellingWriter{cancel: cancel}
	got := run(ctx, []string{"sim", "--seeds", "1", "--trace", "--duration", "24h"}, out, io.Discard)
	if got != int(cli.StatusInterrupted) {
		t.Errorf("exit status %d, want %d", got, cli.StatusInterrupted)
	}
	if strings.Contains(out.output.String(), "no violation") {
		t.Error("the trace of an incomplete world ends with a verdict")
	}
}

// broken is a stream whose writes fail.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestFailedOutputIsAnError(t *testing.T) {
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
			t.Errorf("%q: the error has a hint at --help: %q", args, errs.String())
		}
	}
}
