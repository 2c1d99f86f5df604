package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/demo"
	"github.com/leasehold-dev/leasehold/examples/livemesh/fleet"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/examples/livemesh/promise"
)

// TestMain makes this binary also the processes of a fleet.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args[1:], "--child") {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestRealProcesses: the guarantees of queues and topics hold for each message while real
// processes are killed with SIGKILL, stopped and restarted. More runs: -args -runs=20.
func TestRealProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("each run takes half a minute")
	}
	var queues, topics promise.Tally
	runs := meshtest.Runs(2)
	t.Run("runs", func(t *testing.T) {
		done := make(chan *demo.Report, runs)
		for seed := range uint64(runs) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				done <- runDemoWithFaults(t, seed)
			})
		}
		t.Cleanup(func() {
			close(done)
			for report := range done {
				queues.Add(report.Queues)
				topics.Add(report.Topics)
			}
		})
	})
	t.Logf("%d runs: %d messages were acknowledged, %d of them lost; %d copies were due, %d of them missed; all reported",
		runs, queues.Due, queues.Lost, topics.Due, topics.Lost)
	if queues.Due < 50*runs || topics.Due < 50*runs {
		t.Error("too few requests for a valid test")
	}
}

func runDemoWithFaults(t *testing.T, seed uint64) *demo.Report {
	var output bytes.Buffer
	cfg := demo.Config{Length: 15 * time.Second, Seed: seed, Out: &output}
	dir := t.TempDir()
	report, err := demo.Run(t.Context(), cfg, func(ctx context.Context) (*fleet.Fleet, error) { return startFleet(ctx, dir) })
	t.Log(output.String())
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Blows) == 0 {
		t.Error("no faults were injected")
	}
	return report
}

// testFleet starts a fleet, which runs until the test ends.
func testFleet(t *testing.T) *fleet.Fleet {
	t.Helper()
	f, err := startFleet(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// TestBadInput: invalid arguments fail with an error of one line.
func TestBadInput(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"nonsense"}, "unknown command"},
		{[]string{"documents", "--listen", "nowhere"}, "--listen: "},
		{[]string{"documents", "--listen", "0.0.0.0:0"}, "--advertise"},
		{[]string{"demo", "--for", "-1s"}, "--for is -1s"},
	} {
		root := newRoot()
		root.SetArgs(test.args)
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		err := root.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %q", test.args, err, test.want)
		}
	}
}
