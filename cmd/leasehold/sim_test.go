package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/internal/mutant"
	"github.com/leasehold-dev/leasehold/internal/sim"
)

// parsed returns the options that arguments of sim amount to.
func parsed(t *testing.T, args ...string) (*cobra.Command, *simOptions) {
	t.Helper()
	o := &simOptions{}
	cmd := &cobra.Command{}
	o.addFlags(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	return cmd, o
}

func TestReplayRepeatsWhatShapesTheWorld(t *testing.T) {
	const base = "go run ./cmd/leasehold sim --seed 17 --seeds 1 --trace"
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, base},
		{[]string{"--seeds=50", "--seed=3", "--parallel=1", "--stop-after=2", "--json"}, base},
		{[]string{"--owners=5"}, base + " --owners 5"},
		{[]string{"--owners=3", "--duration=120s", "--faults=default", "--leases-off=false"}, base}, // as it is anyway
		{[]string{"--lookups=1", "--managers=3", "--namespaces=1", "--duration=90s"}, base + " --duration 1m30s --managers 3 --lookups 1 --namespaces 1"},
		{[]string{"--leases-off", "--equal-clocks"}, base + " --leases-off --equal-clocks"},
		{[]string{"--diskless"}, base + " --diskless"},
		{[]string{"--faults=none"}, base + " --faults none"},
		{[]string{"--faults=default, loss=0"}, base + " --faults default,loss=0"},
		{[]string{"--faults=loss=1,loss=2,delay=0"}, base + " --faults loss=2"},
		{[]string{"--planted=some-bug", "--owners=2"}, "go run ./cmd/leasehold sim --mutant some-bug --seed 17 --seeds 1 --trace --owners 2"},
	} {
		_, o := parsed(t, test.args...)
		if got := o.replay(17); got != test.want {
			t.Errorf("%q:\n got %s\nwant %s", test.args, got, test.want)
		}
	}
}

// TestReplayReplays takes the command that a violation is printed with, and
// sees the same violation happen.
func TestReplayReplays(t *testing.T) {
	var out bytes.Buffer
	args := []string{"sim", "--leases-off", "--owners", "4", "--faults", "default, hostile=0", "--seeds", "40", "--stop-after", "1", "--json"}
	if got := run(t.Context(), args, &out, io.Discard); got != int(statusViolated) {
		t.Fatalf("exit status %d: no violation to replay\n%s", got, out.String())
	}
	var report simReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	f := report.Failures[0]
	replay, ok := strings.CutPrefix(f.Replay, "go run ./cmd/leasehold ")
	if !ok {
		t.Fatalf("unexpected command: %s", f.Replay)
	}
	out.Reset()
	if got := run(t.Context(), strings.Fields(replay), &out, io.Discard); got != int(statusViolated) {
		t.Errorf("%s: exit status %d", replay, got)
	}
	if want := fmt.Sprintf("!!! %s violated at %s: %s\n", f.Invariant, f.At, f.Text); !strings.Contains(out.String(), want) {
		t.Errorf("the replay does not show %q", want)
	}
	if !strings.Contains(out.String(), plain(f.text())) {
		t.Errorf("the replay does not end with\n%s", plain(f.text()))
	}
}

func TestPlantedArgs(t *testing.T) {
	m := mutant.Mutant{Name: "some-bug", Seeds: 70}
	for _, test := range []struct{ args, want []string }{
		{nil, []string{"sim", "--planted=some-bug", "--seeds=70", "--stop-after=1"}},
		{[]string{"--mutant", "some-bug", "--json"}, []string{"sim", "--planted=some-bug", "--seeds=70", "--stop-after=1", "--json=true"}},
		{
			[]string{"--seeds", "1", "--stop-after", "5", "--trace", "--faults", "default, loss=0", "--duration", "1h"},
			[]string{"sim", "--planted=some-bug", "--seeds=1", "--stop-after=5", "--trace=true", "--faults=default,loss=0", "--duration=1h0m0s"},
		},
	} {
		cmd, _ := parsed(t, test.args...)
		if got := plantedArgs(cmd.Flags(), m); !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.args, got, test.want)
		}
	}
}

func TestMixFlagKeepsTheShorterText(t *testing.T) {
	for s, want := range map[string]string{
		"default":               "default",
		"default,loss=5":        "default", // it is 5 anyway
		"default , loss=0":      "default,loss=0",
		"loss=1, loss=1":        "loss=1",
		"none":                  "none",
		"loss=0":                "none",
		"none,loss=1,isolate=2": "isolate=2,loss=1", // in the order of the kinds
	} {
		var mix sim.Mix
		f := &mixFlag{mix: &mix}
		if err := f.Set(s); err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		if f.String() != want {
			t.Errorf("%q: got %q, want %q", s, f, want)
		}
		if again, err := sim.ParseMix(f.String()); err != nil || again.String() != mix.String() {
			t.Errorf("%q means %v, but %q means %v (%v)", s, mix, f, again, err)
		}
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
	if got != int(statusInterrupted) {
		t.Errorf("exit status %d, want %d", got, statusInterrupted)
	}
	if !strings.Contains(out.String(), "; interrupted before the other ") {
		t.Errorf("the summary does not say that it is not complete:\n%s", out.String())
	}
}

func TestInterruptedTraceEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &cancelling{cancel: cancel}
	got := run(ctx, []string{"sim", "--seeds", "1", "--trace", "--duration", "24h"}, out, io.Discard)
	if got != int(statusInterrupted) {
		t.Errorf("exit status %d, want %d", got, statusInterrupted)
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
		if got != int(statusTrouble) || !strings.Contains(errs.String(), "disk full") {
			t.Errorf("%q: exit status %d, %q", args, got, errs.String())
		}
		if strings.Contains(errs.String(), "--help") {
			t.Errorf("%q: blames the flags: %q", args, errs.String())
		}
	}
}
