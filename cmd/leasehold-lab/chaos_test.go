package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold/lab/chaos"
	"github.com/leasehold-dev/leasehold/lab/chaos/lan"
)

// chaosCommand returns the real command and its directory for temporary files, which no other process uses.
func chaosCommand(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	if err := lan.Available(); err != nil {
		t.Skipf("SKIPPED, NOT TESTED: network namespaces are not available: %v", err)
	}
	dir := t.TempDir()
	cmd := exec.Command("leasehold-lab", append([]string{"chaos"}, args...)...) // TestMain has put it on the path
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "LEASEHOLD_LISTEN=nonsense", "NO_COLOR=1")
	return cmd, dir
}

// TestChaos runs a few faults, and checks the report and that no file remains.
func TestChaos(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report")
	cmd, dir := chaosCommand(t, "--faults", "4", "--seed", "1", "--slack", "30s", "--kinds", "owner-kill,leader-alone", "--json", "--report", file)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs.String())
	}
	var r chaos.Report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if r.Faults != 4 || r.Seed != 1 || r.Store != "etcd" || len(r.Violations) > 0 || r.Kept != "" {
		t.Errorf("got %+v", r)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("remaining files: %v, %v", left, err)
	}
	if kept, err := os.ReadFile(file); err != nil || !bytes.Equal(kept, out) {
		t.Errorf("report file: %s, %v", kept, err)
	}
}

// TestChaosWithLeasesOff checks that the output names the violation, the command that repeats it, and the logs.
func TestChaosWithLeasesOff(t *testing.T) {
	t.Parallel()
	cmd, _ := chaosCommand(t, "--faults", "16", "--seed", "1", "--slack", "30s", "--leases-off")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var exited *exec.ExitError
	if !errors.As(err, &exited) || exited.ExitCode() != int(cli.StatusViolated) {
		t.Fatalf("%v\n%s%s", err, out, errs.String())
	}
	if text := errs.String(); !strings.Contains(text, "leasehold-lab chaos --store etcd --seed 1 --faults 16") || !strings.Contains(text, "--leases-off") {
		t.Errorf("output %q", text)
	}
	if text := string(out); !strings.Contains(text, "two owners held a key at the same time") || !strings.Contains(text, "\nkept  ") {
		t.Errorf("output %q", text)
	}
}

// TestChaosCrash checks that the unexpected end of a process is reported as a violation.
func TestChaosCrash(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report")
	cmd, dir := chaosCommand(t, "--for", "10m", "--seed", "1", "--slack", "30s", "--kinds", "delay", "--report", file)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	timeout, again := time.After(2*time.Minute), time.NewTicker(50*time.Millisecond)
	defer again.Stop()
	for killed := false; ; {
		select {
		case <-again.C:
			if faults, _ := filepath.Glob(filepath.Join(dir, "leasehold-chaos-*", "faults.jsonl")); !killed && len(faults) == 1 && size(faults[0]) > 0 {
				killed = kill(t, filepath.Join(filepath.Dir(faults[0]), "o3.log"))
			}
		case err := <-ended:
			if exited, ok := errors.AsType[*exec.ExitError](err); !ok || exited.ExitCode() != int(cli.StatusViolated) {
				t.Errorf("%v\n%s%s", err, out.String(), errs.String())
			}
			if text := out.String(); !strings.Contains(text, "crash: a process ended by itself") || !strings.Contains(text, "o3: signal: killed") || !strings.Contains(text, "\nkept  ") {
				t.Errorf("output %q", text)
			}
			var r chaos.Report
			if kept, err := os.ReadFile(file); err != nil || json.Unmarshal(kept, &r) != nil || len(r.Violations) != 1 || r.Kept == "" {
				t.Errorf("report file: %s, %v", kept, err)
			}
			return
		case <-timeout:
			_ = cmd.Process.Kill()
			t.Fatalf("the run continues after 2 minutes; owner killed: %t\n%s", killed, errs.String())
		}
	}
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// kill kills the process that logs to a file, and reports whether it has killed one.
func kill(t *testing.T, log string) bool {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/fd/2") // the pattern is right
	for _, link := range all {
		if to, err := os.Readlink(link); err == nil && to == log {
			pid, err := strconv.Atoi(strings.Split(link, "/")[2])
			if err != nil {
				t.Fatal(err)
			}
			return syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	return false
}

// TestChaosKilled checks that all processes of a run end when the command is killed.
func TestChaosKilled(t *testing.T) {
	t.Parallel()
	cmd, dir := chaosCommand(t, "--for", "10m", "--seed", "1", "--kinds", "owner-pause-long")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	running := func() int {
		var n int
		all, _ := filepath.Glob("/proc/[0-9]*/fd/2") // the pattern is right
		for _, link := range all {
			if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, dir) {
				n++
			}
		}
		return n
	}
	const processes = 3 + 8 + 2 + 1 // managers, owners, callers, the process that holds the disks
	within := func(what string, condition func() bool) {
		t.Helper()
		timeout, again := time.After(time.Minute), time.NewTicker(50*time.Millisecond)
		defer again.Stop()
		for !condition() {
			select {
			case <-again.C:
			case <-timeout:
				_ = cmd.Process.Kill()
				t.Fatalf("%s: %d processes", what, running())
			}
		}
	}
	within("waiting for all processes to start", func() bool { return running() == processes })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	within("waiting for all processes to end", func() bool { return running() == 0 })
}

// TestChaosFlags: invalid flags are reported with the accepted values before a build or start.
func TestChaosFlags(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--drift", "beyond"}, "--drift beyond: write --drift=beyond"},
		{[]string{"--drift=far"}, "--drift=far: want within or beyond"},
		{[]string{"--other", "/no/such/program"}, "--other /no/such/program: want a program, or \"oldest\""},
		{[]string{"--failpoints", "--drift", "--owners", "0"}, "--owners 0: want 1 to 100"},
		{[]string{"--store", "all", "--kinds", "disk-full"}, "--kinds disk-full: it requires --store etcd or external"},
		{[]string{"--drift", "far"}, "--drift far: write --drift, which means --drift=within, or --drift=beyond"},
		{[]string{"--for", "0s"}, "--for 0s: want a time above 0"},
		{[]string{"--faults", "0"}, "--faults 0: want a number above 0"},
		{[]string{"--kinds", ""}, "--kinds: a name is empty; --kinds help lists the faults"},
		{[]string{"--kinds", "loss,"}, "--kinds: a name is empty"},
		{[]string{"--store", ""}, "--store is empty: omit it, or set a value"},
		{[]string{"--other", ""}, "--other is empty"},
		{[]string{"storm"}, "takes only flags, and \"storm\" is not a flag"},
	} {
		var out, errs bytes.Buffer
		got := run(t.Context(), append([]string{"chaos"}, test.args...), &out, &errs)
		if got != int(cli.StatusTrouble) || !strings.Contains(errs.String(), test.want) || out.Len() > 0 {
			t.Errorf("%q: status %d, %q, %q; want %q", test.args, got, out.String(), errs.String(), test.want)
		}
	}
	var out, errs bytes.Buffer
	if got := run(t.Context(), []string{"chaos", "--kinds", "help"}, &out, &errs); got != 0 || !strings.Contains(out.String(), "\nhalves  ") {
		t.Errorf("status %d, %q, %q", got, out.String(), errs.String())
	}
}

// TestChaosInterrupted checks that an interrupt ends a run with a report, and is not reported as a violation.
func TestChaosInterrupted(t *testing.T) {
	t.Parallel()
	cmd, dir := chaosCommand(t, "--for", "10m", "--seed", "1", "--slack", "30s", "--kinds", "owner-pause-short")
	var out bytes.Buffer
	cmd.Stdout = &out
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var progress strings.Builder
	lines := bufio.NewScanner(errs)
	for lines.Scan() { // progress is printed every few seconds
		progress.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "breaking") {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = cmd.Wait()
	var exited *exec.ExitError
	if !errors.As(err, &exited) || exited.ExitCode() != int(cli.StatusInterrupted) || !strings.Contains(out.String(), ", interrupted\n") {
		t.Fatalf("%v\n%s%s", err, out.String(), progress.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("remaining files: %v, %v", left, err)
	}
}
