package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/leasehold-dev/leasehold/internal/chaos"
	"github.com/leasehold-dev/leasehold/internal/chaos/check"
	"github.com/leasehold-dev/leasehold/internal/chaos/lan"
	"github.com/leasehold-dev/leasehold/internal/chaos/leaks"
)

// chaosCommand is the real command, with a directory for its files that no other
// process has.
func chaosCommand(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	if err := lan.Available(); err != nil {
		t.Skipf("SKIPPED, NOT TESTED: there can be no network namespaces here: %v", err)
	}
	dir := t.TempDir()
	cmd := exec.Command("leasehold", append([]string{"chaos"}, args...)...) // TestMain has put it on the path
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "LEASEHOLD_LISTEN=nonsense", "NO_COLOR=1")
	return cmd, dir
}

// TestChaos runs a few faults from beginning to end, and leaves nothing.
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
		t.Errorf("it left %v (%v)", left, err)
	}
	if kept, err := os.ReadFile(file); err != nil || !bytes.Equal(kept, out) {
		t.Errorf("the file has %s (%v)", kept, err)
	}
}

// TestChaosWithLeasesOff says what was violated, how to do it again, and where to look.
func TestChaosWithLeasesOff(t *testing.T) {
	t.Parallel()
	cmd, _ := chaosCommand(t, "--faults", "16", "--seed", "1", "--slack", "30s", "--leases-off")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var exited *exec.ExitError
	if !errors.As(err, &exited) || exited.ExitCode() != int(statusViolated) {
		t.Fatalf("%v\n%s%s", err, out, errs.String())
	}
	if text := errs.String(); !strings.Contains(text, "leasehold chaos --store etcd --seed 1 --faults 16") || !strings.Contains(text, "--leases-off") {
		t.Errorf("it says %q", text)
	}
	if text := string(out); !strings.Contains(text, "two owners held a key at the same time") || !strings.Contains(text, "\nkept  ") {
		t.Errorf("it says %q", text)
	}
}

// TestChaosCrash: a process that ends and should not is a violation like any other, with a
// report.
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
	late, again := time.After(2*time.Minute), time.NewTicker(50*time.Millisecond)
	defer again.Stop()
	for killed := false; ; {
		select {
		case <-again.C:
			if faults, _ := filepath.Glob(filepath.Join(dir, "leasehold-chaos-*", "faults.jsonl")); !killed && len(faults) == 1 && size(faults[0]) > 0 {
				killed = kill(t, filepath.Join(filepath.Dir(faults[0]), "o3.log"))
			}
		case err := <-ended:
			if exited, ok := errors.AsType[*exec.ExitError](err); !ok || exited.ExitCode() != int(statusViolated) {
				t.Errorf("%v\n%s%s", err, out.String(), errs.String())
			}
			if text := out.String(); !strings.Contains(text, "crash: a process ended by itself") || !strings.Contains(text, "o3: signal: killed") || !strings.Contains(text, "\nkept  ") {
				t.Errorf("it says %q", text)
			}
			var r chaos.Report
			if kept, err := os.ReadFile(file); err != nil || json.Unmarshal(kept, &r) != nil || len(r.Violations) != 1 || r.Kept == "" {
				t.Errorf("the file has %s (%v)", kept, err)
			}
			return
		case <-late:
			_ = cmd.Process.Kill()
			t.Fatalf("it goes on, killed %t\n%s", killed, errs.String())
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

// kill kills the process that logs to a file, and reports whether there is one.
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

// TestChaosKilled: whatever becomes of the command, its processes end with it.
func TestChaosKilled(t *testing.T) {
	t.Parallel()
	cmd, dir := chaosCommand(t, "--for", "10m", "--seed", "1", "--kinds", "owner-pause-long")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ours := func() int {
		var n int
		all, _ := filepath.Glob("/proc/[0-9]*/fd/2") // the pattern is right
		for _, link := range all {
			if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, dir) {
				n++
			}
		}
		return n
	}
	const processes = 3 + 8 + 2 + 1 // managers, owners, callers, the disks
	within := func(what string, yes func() bool) {
		t.Helper()
		late, again := time.After(time.Minute), time.NewTicker(50*time.Millisecond)
		defer again.Stop()
		for !yes() {
			select {
			case <-again.C:
			case <-late:
				_ = cmd.Process.Kill()
				t.Fatalf("%s: %d processes", what, ours())
			}
		}
	}
	within("waiting for all to be there", func() bool { return ours() == processes })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	within("waiting for all to be gone", func() bool { return ours() == 0 })
}

func TestChaosText(t *testing.T) {
	r := chaos.Report{
		Store: "flease", Seed: 7, Seconds: 12, Storms: 1, Faults: 3, ByKind: map[string]int{"loss": 2, "delay": 1}, Revived: 1, Created: 1, Unbounded: true,
		Checked:    check.Counts{Writes: 2, Refused: 1},
		Violations: []check.Violation{{Invariant: "I5", Broken: "a table went back", Text: "from 2 to 1", Times: 4}},
		Kept:       "/somewhere",
	}
	r.ShortLives, r.Vitals = 2, []leaks.Course{
		{Process: "m1", What: "bytes of heap", Samples: 30, Early: 3 << 20, Late: 4 << 20, Allowed: 8 << 20},
		{Process: "o1", What: "goroutines", Samples: 20, Early: 50, Late: 100, Allowed: 78},
	}
	r.Recoveries = chaos.Recoveries{Count: 14, WithinBound: 2, BoundMillis: 5800, Late: slices.Repeat([]chaos.Late{{Storm: 7, Millis: 6297, StoreMillis: 1500}}, 12)}
	text := ansi.Strip(chaosText(&r, 0))
	for _, want := range []string{
		"2 of 14 within B, which is 5800 ms (I6)\n            late: 6297 ms after storm 7, where the store had a leader after 1500 ms\n", "\n            2 more\n",
		"store flease, seed 7, 12.0 s, 1 storm\n", "3 faults: delay 1, loss 2\n", "I5: a table went back (4 times): from 2 to 1\n",
		"2 other processes lived too short to say\n            m1     heap ", " 3.0 MiB      4.0 MiB (8.0) of 30 samples\n            o1     goroutines ", " 50.0    100.0 (78.0) of 20 samples\n",
		"kept        /somewhere, where README says what is what\n", "2 writes accepted, 1 refused (I9)\n", "hosts       TCP waits for as long as it likes", "processes that ended by themselves and were started again: 1; times that the namespace was gone with all managers and was created anew: 1\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	narrow := ansi.Strip(chaosText(&r, 60))
	if !slices.Equal(strings.Fields(narrow), strings.Fields(text)) {
		t.Errorf("other words in a narrow terminal:\n%s", narrow)
	}
	for line := range strings.Lines(narrow) {
		if ansi.StringWidth(line) > 61 || line != "Chaos\n" && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line[10:], "  ") {
			t.Errorf("this does not fit into a terminal: %q", line)
		}
	}
	if text := ansi.Strip(chaosText(&chaos.Report{ShortLives: 3}, 0)); !strings.Contains(text, "vitals      not judged: none of 3 processes ") {
		t.Errorf("nothing was judged, and that is not said:\n%s", text)
	}
	text = ansi.Strip(chaosText(&chaos.Report{Interrupted: true}, 0))
	if !strings.Contains(text, "violations  none\n") || strings.Contains(text, "fence") || strings.Contains(text, "hosts") || !strings.Contains(text, "0 storms, interrupted\n") ||
		!strings.Contains(text, "no storm was waited out") {
		t.Errorf("got\n%s", text)
	}
}

// TestChaosRecord: reports follow each other, and what was there before goes with the first.
func TestChaosRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	has := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("it has %q (%v), want %q", got, err, want)
		}
	}
	if err := os.WriteFile(path, []byte("of the run before"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := newRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	has("of the run before")
	for _, report := range []string{"one\n", "two\n"} {
		if err := r.add(report); err != nil {
			t.Fatal(err)
		}
	}
	has("one\ntwo\n")
	if _, err := newRecord(filepath.Join(path, "below")); err == nil {
		t.Error("it is below a file")
	}
	none, err := newRecord("")
	if err != nil || none.add("lost") != nil {
		t.Error("nobody wants one")
	}
	none.close()
}

// TestChaosFlags: what is wrong is said before anything is built or started, and how it is right.
func TestChaosFlags(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--drift", "beyond"}, "--drift beyond: write --drift=beyond"},
		{[]string{"--drift=far"}, "--drift=far: want within or beyond"},
		{[]string{"--other", "/no/such/program"}, "--other /no/such/program: want a program, or \"oldest\""},
		{[]string{"--failpoints", "--drift", "--owners", "0"}, "--owners 0: want 1 to 100"},
		{[]string{"--store", "all", "--kinds", "disk-full"}, "--kinds disk-full: it takes --store etcd or external"},
		{[]string{"--drift", "far"}, "--drift far: write --drift, which is --drift=within, or --drift=beyond"},
		{[]string{"--for", "0s"}, "--for 0s: want a time above 0"},
		{[]string{"--faults", "0"}, "--faults 0: want a number above 0"},
		{[]string{"--kinds", ""}, "--kinds: there is a name missing; --kinds help says which faults there are"},
		{[]string{"--kinds", "loss,"}, "--kinds: there is a name missing"},
		{[]string{"--store", ""}, "--store says nothing: leave it out, or say what it is to be"},
		{[]string{"--other", ""}, "--other says nothing"},
		{[]string{"storm"}, "takes flags only, and \"storm\" is none"},
	} {
		var out, errs bytes.Buffer
		got := run(t.Context(), append([]string{"chaos"}, test.args...), &out, &errs)
		if got != int(statusTrouble) || !strings.Contains(errs.String(), test.want) || out.Len() > 0 {
			t.Errorf("%q: status %d, %q, %q; want %q", test.args, got, out.String(), errs.String(), test.want)
		}
	}
	var out, errs bytes.Buffer
	if got := run(t.Context(), []string{"chaos", "--kinds", "help"}, &out, &errs); got != 0 || !strings.Contains(out.String(), "\nhalves  ") {
		t.Errorf("status %d, %q, %q", got, out.String(), errs.String())
	}
}

// TestChaosInterrupted: who does not want to wait gets a report, and nothing is blamed on that.
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
	var said strings.Builder
	lines := bufio.NewScanner(errs)
	for lines.Scan() { // it says where it is every few seconds
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "breaking") {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = cmd.Wait()
	var exited *exec.ExitError
	if !errors.As(err, &exited) || exited.ExitCode() != int(statusInterrupted) || !strings.Contains(out.String(), ", interrupted\n") {
		t.Fatalf("%v\n%s%s", err, out.String(), said.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v (%v)", left, err)
	}
}

func TestChaosProgress(t *testing.T) {
	for _, test := range []struct {
		at    chaos.Snapshot
		share float64
		text  string
	}{
		{chaos.Snapshot{Elapsed: 30 * time.Second, Of: time.Minute, Faults: 1, Store: "etcd", Doing: "breaking"}, 0.5, "etcd: 30s of ~1m0s, 0 storms, 1 fault, breaking"},
		{chaos.Snapshot{Elapsed: time.Second, Faults: 30, Enough: 40, Storms: 2, Broken: true, Store: "flease", Doing: "recovering"}, 0.75, "flease: 1s, 2 storms, 30 of 40 faults, recovering, VIOLATION"},
		{chaos.Snapshot{Elapsed: time.Hour, Of: time.Minute, Store: "external", Doing: "judging"}, 1, "external: 1h0m0s, 0 storms, 0 faults, judging"},
	} {
		if got := share(test.at); got != test.share {
			t.Errorf("%+v: share %v, want %v", test.at, got, test.share)
		}
		if got := ansi.Strip(chaosNumbers(test.at)); got != test.text {
			t.Errorf("got %q, want %q", got, test.text)
		}
		for _, width := range []int{20, 60, 120} {
			p := newChaosProgress(screen{}, false)
			if line := p.line(test.at, width); ansi.StringWidth(line) > width {
				t.Errorf("%d columns: %q", width, line)
			}
		}
	}
	p := newChaosProgress(screen{}, false)
	bar := func(doing string) int {
		return strings.IndexFunc(ansi.Strip(p.line(chaos.Snapshot{Doing: doing}, 50)), func(r rune) bool { return r != '█' && r != '░' })
	}
	if bar("recovering"); bar("judging") != bar("recovering") {
		t.Error("the bar dances with what is said beside it")
	}
}

// TestSecondSignal: it ends a process at once, unless it comes with the first.
func TestSecondSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		stopped := false
		afterFirst(ctx, func() { stopped = true })
		cancel()
		time.Sleep(oneSignal - 1)
		if synctest.Wait(); stopped {
			t.Error("a signal that comes with the first ends the process")
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); !stopped {
			t.Error("a second signal does not end the process")
		}
	})
}
