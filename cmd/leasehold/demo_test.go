package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/command/democmd"

	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/demo"
	"github.com/leasehold-dev/leasehold/server/supervisor"
)

// demoCommand returns the real command and its directory for temporary files, which no other process uses.
func demoCommand(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("leasehold", append([]string{"demo"}, args...)...) // TestMain has put it on the path
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "LEASEHOLD_LISTEN=nonsense", "NO_COLOR=1")
	return cmd, dir
}

// TestDemo runs a demo from beginning to end. The keys of a killed owner do not wait until its leases
// expire.
func TestDemo(t *testing.T) {
	r := runDemo(t, demo.Disk)
	if supervisor.Supported && (!r.Supervised || r.LossesFor["died"] == 0 || r.LossesFor["expired"] > 0) {
		t.Errorf("the supervisors did not prove the end of the owners: %+v", r)
	}
}

// TestDemoWithoutSupervisor: the keys of a killed owner wait until its leases expire.
func TestDemoWithoutSupervisor(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: it waits for leases to expire")
	}
	r := runDemo(t, demo.Disk, "--no-supervisor", "--lease", "6s")
	const shortest = 5000 // ms: a lease of 6 s that is renewed every 600 ms
	if r.Supervised || r.RecoveryMaxMillis < shortest || r.LossesFor["expired"] == 0 {
		t.Errorf("the leases of a killed owner have not expired: %+v", r)
	}
}

// TestDemoTLS runs a demo with certificates and an access policy.
func TestDemoTLS(t *testing.T) {
	r := runDemo(t, demo.Disk, "--tls")
	if !r.TLS || r.Renewed != 8 || r.LostToRenewal != 0 {
		t.Errorf("want 8 renewed certificates, and no lease lost by a renewal: %+v", r)
	}
}

// TestDemoDiskless runs a demo with diskless managers.
func TestDemoDiskless(t *testing.T) { runDemo(t, demo.Flease) }

func runDemo(t *testing.T, store string, args ...string) demo.Report {
	t.Helper()
	cmd, dir := demoCommand(t, append([]string{"--for", "10s", "--json", "--seed", "1", "--store", store}, args...)...)
	r := reportOf(t, cmd)
	switch {
	case r.Store != store:
		t.Errorf("got store %q, want %q", r.Store, store)
	case r.DualOwnership != 0 || r.GenerationReversals != 0 || r.StaleAnswers != 0 || r.SilentLosses != 0 || r.LeasesLostInFailover != 0:
		t.Errorf("not safe: %+v", r)
	case r.OwnersKilled < 1 || r.LeadersKilled < 1 || len(r.FailoverMillis) != r.LeadersKilled:
		t.Errorf("too few owners or leaders were killed, or a failover is missing: %+v", r)
	case r.Requests < 100 || r.Checked < r.Requests || r.Eventually != 1 || r.Failures != 0:
		t.Errorf("too few requests, or some failed: %+v", r)
	case r.Availability <= 0 || r.WithoutOwnerSeconds == 0:
		t.Errorf("an owner was killed, but no request waited: %+v", r)
	case len(r.RecoveryMillis) != r.OwnersKilled || r.RecoveryMedianMillis <= 0 || r.RecoveryMaxMillis < r.RecoveryMedianMillis:
		t.Errorf("a recovery is missing: %+v", r)
	case r.Tenures < 2000:
		t.Errorf("want at least one tenure for each of 2,000 users: %+v", r)
	case r.Losses == 0 || r.Republished == 0:
		t.Errorf("an owner was killed, but no loss was reported: %+v", r)
	}
	waitForNoProcesses(t, dir)
	noFiles(t, dir)
	return r
}

// TestDemoRollingRestart restarts all owners once. No state is lost, and
// every request succeeds.
func TestDemoRollingRestart(t *testing.T) {
	const keys, owners = 2000, 3
	cmd, dir := demoCommand(t, "--rolling-restart", "--rounds", "1", "--owners", strconv.Itoa(owners),
		"--keys", strconv.Itoa(keys), "--value-size", "200", "--rate", "300", "--json")
	r := reportOf(t, cmd)
	switch {
	case r.DualOwnership != 0 || r.GenerationReversals != 0 || r.StaleAnswers != 0 || r.SilentLosses != 0 || r.Garbled != 0:
		t.Errorf("not safe: %+v", r)
	case r.Losses != 0 || r.ByRestart != 0 || r.Republished != 0 || r.LookedUp != keys:
		t.Errorf("state was lost: %+v", r)
	case r.Restarts != owners || r.Rounds != 1 || r.OwnersKilled != 0 || r.LeadersKilled != 0:
		t.Errorf("not all owners were restarted: %+v", r)
	case r.Requests == 0 || r.Failed != 0 || r.Success != 1 || r.Tenures < keys:
		t.Errorf("no requests, too few tenures, or a request failed: %+v", r)
	case r.MovedRanges == 0 || r.MovedShare < 1 || r.Keys != keys || r.ValueSize != 200:
		t.Errorf("too few ranges or keys moved: %+v", r)
	case r.Unavailable.Keys == 0 || r.Unavailable.Times == 0 || r.Unavailable.P99 < r.Unavailable.Median || r.Unavailable.Max < r.Unavailable.P99:
		t.Errorf("no unavailability during moves was measured: %+v", r)
	}
	waitForNoProcesses(t, dir)
	noFiles(t, dir)
}

// TestDemoOutage kills all managers for longer than the lease duration. No state is lost, and
// every request succeeds after retries.
func TestDemoOutage(t *testing.T) {
	const keys = 500
	cmd, dir := demoCommand(t, "--outage", "10s", "--lease", "6s", "--owners", "3", "--keys", strconv.Itoa(keys), "--rate", "200", "--json")
	r := reportOf(t, cmd)
	switch {
	case r.DualOwnership != 0 || r.GenerationReversals != 0 || r.StaleAnswers != 0 || r.SilentLosses != 0 || r.Garbled != 0:
		t.Errorf("not safe: %+v", r)
	case r.Losses != 0 || r.ByOutage != 0 || r.Republished != 0 || r.LookedUp != keys:
		t.Errorf("state was lost: %+v", r)
	case r.OutageSeconds < 10 || r.ResumedRanges == 0 || r.AfterReturn <= 0:
		t.Errorf("there was no outage, or no range was resumed: %+v", r)
	case r.Requests == 0 || r.Failed != 0 || r.Availability == 1:
		t.Errorf("requests failed, or none waited: %+v", r)
	}
	waitForNoProcesses(t, dir)
	noFiles(t, dir)
}

// reportOf runs a demo, and returns its report. The demo must succeed and print only that.
func reportOf(t *testing.T, cmd *exec.Cmd) demo.Report {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, errs.String(), out.String())
	}
	if errs.Len() > 0 {
		t.Errorf("output on stderr: %s", errs.String())
	}
	var r demo.Report
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEndedDemoLeavesNothing checks that no process remains after a signal, and no file unless the signal
// is SIGKILL.
func TestEndedDemoLeavesNothing(t *testing.T) {
	for _, test := range []struct {
		signal syscall.Signal
		status int // -1: killed
		files  bool
	}{
		{syscall.SIGINT, int(cli.StatusInterrupted), false},
		{syscall.SIGKILL, -1, true},
	} {
		t.Run(test.signal.String(), func(t *testing.T) {
			t.Parallel()
			cmd, dir := demoCommand(t, "--for", "5m")
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(stderr)
			for lines.Scan() && !strings.Contains(lines.Text(), "users begin to call") {
			}
			if processesIn(t, dir) < 9 && runtime.GOOS == "linux" {
				t.Error("fewer than 9 processes before the signal")
			}
			if err := cmd.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			var ended *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != test.status {
				t.Errorf("the demo ended with %v, want exit status %d", err, test.status)
			}
			waitForNoProcesses(t, dir)
			if !test.files {
				noFiles(t, dir)
			}
		})
	}
}

// waitForNoProcesses waits until all processes of a demo have ended by themselves.
func waitForNoProcesses(t *testing.T, dir string) {
	t.Helper()
	const limit = 10 * time.Second
	timeout := time.After(limit)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for n := processesIn(t, dir); n > 0; n = processesIn(t, dir) {
		select {
		case <-again.C:
		case <-timeout:
			t.Fatalf("%d processes remain after %v", n, limit)
		}
	}
}

// noFiles checks that a directory is empty.
func noFiles(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("remaining files: %v, %v", left, err)
	}
}

// processesIn counts the processes whose directory for temporary files is dir. Without /proc it
// returns 0.
func processesIn(t *testing.T, dir string) int {
	t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range environs {
		if filepath.Base(filepath.Dir(path)) == strconv.Itoa(os.Getpid()) {
			continue
		}
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte("TMPDIR="+dir)) {
			n++
		}
	}
	return n
}

func TestDemoExitStatus(t *testing.T) {
	good := demo.Report{
		CallCounts: demo.CallCounts{Requests: 1}, LossCounts: demo.LossCounts{Losses: 1},
		OwnershipCounts: demo.OwnershipCounts{Checked: 1, Tenures: 1}, FaultCounts: demo.FaultCounts{OwnersKilled: 1, LeadersKilled: 1},
	}
	for _, test := range []struct {
		name   string
		change func(*demo.Report)
		forSet bool
		want   string
	}{
		{"success", func(*demo.Report) {}, true, ""},
		{"violation", func(r *demo.Report) { r.DualOwnership = 1 }, true, "exit status 1"},
		{"low availability is not a violation", func(r *demo.Report) { r.Availability = 0.1 }, true, ""},
		{"violation and too few faults", func(r *demo.Report) { r.DualOwnership, r.Failures = 1, 1 }, true, "exit status 1"},
		{"too few faults", func(r *demo.Report) { r.OwnersKilled = 0 }, true, "killed owners: 0, killed leaders: 1; want at least one of each"},
		{"interrupted", func(r *demo.Report) { r.Interrupted = true }, true, "exit status 130"},
		{"interrupted without a duration", func(r *demo.Report) { r.Interrupted = true }, false, ""},
	} {
		r := good
		test.change(&r)
		o := &democmd.Options{}
		if test.forSet {
			o.Config.For = time.Minute
		}
		var errs bytes.Buffer
		err := o.Judge(console.New(&errs), &r)
		if got := text(err); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
		if reported := strings.Contains(errs.String(), "VIOLATION"); reported != (r.DualOwnership > 0) {
			t.Errorf("%s: output on stderr: %q", test.name, errs.String())
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
