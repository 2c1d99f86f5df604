package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
	"github.com/leasehold-dev/leasehold/internal/testkit/quick"
	"github.com/leasehold-dev/leasehold/lab/chaos/check"
	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
	"github.com/leasehold-dev/leasehold/lab/chaos/lan"
	"github.com/leasehold-dev/leasehold/lab/chaos/leaks"
	"github.com/leasehold-dev/leasehold/lab/chaos/nemesis"
	"github.com/leasehold-dev/leasehold/lab/chaos/oldbuild"
	"github.com/leasehold-dev/leasehold/lab/chaos/skewedclock"
)

// program is the leasehold-lab command, drifter one with settable clocks and failpoints, which are points, and
// old one of the oldest compatible commit. TestMain builds those that are needed.
var (
	program, drifter string
	points           []string
	old              oldbuild.Build
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "chaos-owner" {
		if err := runFencedOwner(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	quick.Without("^(TestStorms|TestClocksBeyondTheBound|TestDroppedLeasesAreDetected|TestOutagesThatMayLose|TestCrash.*)$")
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	if lan.Available() == nil {
		dir, err := os.MkdirTemp("", "leasehold-chaos-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
		program = filepath.Join(dir, "leasehold")
		if out, err := exec.Command("go", "build", "-o", program, "github.com/leasehold-dev/leasehold/cmd/leasehold-lab").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building the command: %v\n%s", err, out)
			return 1
		}
		old = oldbuild.Build{Program: program, Commit: "the same"}
		if testing.Short() {
			return leak.Checked{Tests: m}.Run()
		}
		if old, err = oldbuild.Oldest(context.Background(), "."); err != nil {
			fmt.Fprintf(os.Stderr, "SKIPPED, NOT TESTED: upgrades are from a build to the same one: %v\n", err)
			old = oldbuild.Build{Program: program, Commit: "the same"}
		}
		if drifter, err = skewedclock.Build(context.Background(), dir, skewedclock.PointsTag); err == nil {
			points, err = skewedclock.Points(context.Background(), drifter)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return leak.Checked{Tests: m}.Run()
}

// start runs chaos with the configuration of a test.
func start(t *testing.T, cfg Config) Report {
	t.Helper()
	if err := lan.Available(); err != nil {
		t.Skipf("SKIPPED, NOT TESTED: network namespaces are not available: %v", err)
	}
	cfg.Program, cfg.Drifting, cfg.Other, cfg.Builds = program, drifter, old.Program, []string{"this", old.Commit}
	if len(cfg.Points) > 0 {
		cfg.Program = drifter
	}
	r, err := Run(t.Context(), cfg, func(Snapshot) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("builds %q; %d faults in %d storms, %.1f s; recoveries %+v; checked %+v", r.Builds, r.Faults, r.Storms, r.Seconds, r.Recoveries, r.Checked)
	return r
}

// slack and ttl are for loaded computers, where a process may often get no processor for a second. No test
// here is about speed.
const (
	slack = 30 * time.Second
	ttl   = 2 * time.Second
)

// TestStorms: 200 faults, of all kinds, one of them an outage, without a violation. With embedded etcd the
// owners write to a PostgreSQL; then they are all of one build, with one clock. With the other stores they
// are upgraded, their clocks drift, and they fail at failpoints.
func TestStorms(t *testing.T) {
	for _, shape := range cluster.Shapes() {
		t.Run(string(shape), func(t *testing.T) {
			t.Parallel()
			cfg := DefaultConfig()
			cfg.Shape, cfg.Faults, cfg.Seed, cfg.Slack, cfg.TTL = shape, 67, 1, slack, ttl
			cfg.Outage = nemesis.ShortestOutage
			if shape == cluster.Embedded {
				cfg.Faults, cfg.For = 0, 5*time.Minute
			}
			fencing := shape == cluster.Etcd && fenced(t, &cfg)
			if shape != cluster.Etcd {
				cfg.Points = points
			}
			r := start(t, cfg)
			for _, v := range r.Violations {
				t.Errorf("%v\nLogs are in %s. To repeat it: %s", v, r.Kept, r.Replay)
			}
			if r.Faults < cfg.Faults || r.Recoveries.Count != r.Storms || r.Storms == 0 {
				t.Errorf("%d faults, and %d recoveries from %d storms", r.Faults, r.Recoveries.Count, r.Storms)
			}
			if c := r.Checked; c.Tenures < cluster.Watched || c.Losses == 0 || c.Tables == 0 || c.Calls == 0 || c.Histories < cluster.Registers {
				t.Errorf("checked only %+v", c)
			}
			if c := r.Checked; shape.Stored() && (c.Outages == 0 || c.Kept == 0) {
				t.Errorf("no outage was checked: %+v", c)
			}
			// Whether a late write is rejected is a matter of timing; TestLeasesOffIsDetected requires rejected
			// writes.
			if fencing && r.Checked.Writes == 0 {
				t.Error("the database has accepted no write")
			}
			if r.Kept != "" {
				t.Errorf("the directory %s is left", r.Kept)
			}
		})
	}
}

// TestLeasesOffIsDetected: owners that ignore the end of their leases are detected, even without a fault:
// leases are released when others join. They keep writing to a PostgreSQL concurrently with the new owners of
// their keys, and the fence rejects their writes.
func TestLeasesOffIsDetected(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.Faults, cfg.Seed, cfg.Slack, cfg.LeasesOff, cfg.Dir = 16, 1, slack, true, t.TempDir()
	fencing := fenced(t, &cfg)
	r := start(t, cfg)
	if !slices.ContainsFunc(r.Violations, func(v check.Violation) bool { return v.Broken == "two owners held a key at the same time" }) {
		t.Errorf("no violation of I1: %v", r.Violations)
	}
	if slices.ContainsFunc(r.Violations, func(v check.Violation) bool { return v.Invariant == "I9" }) || fencing && (r.Checked.Writes == 0 || r.Checked.Refused == 0) {
		t.Errorf("a database has accepted %d writes, refused %d, and: %v", r.Checked.Writes, r.Checked.Refused, r.Violations)
	}
	for _, name := range []string{"README", "report.json", "faults.jsonl", "m1.log", "o1.log", "o1.history", "c1.history"} {
		if info, err := os.Stat(filepath.Join(cfg.Dir, name)); err != nil || info.Size() == 0 && filepath.Ext(name) != ".log" && name != "faults.jsonl" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDroppedLeasesAreDetected: owners that drop their leases when they are suspended lose state in an
// outage of the network, although no owner has failed (I11).
func TestDroppedLeasesAreDetected(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.Faults, cfg.Seed, cfg.Slack, cfg.TTL, cfg.Dir = 1, 1, slack, ttl, t.TempDir()
	cfg.Kinds, cfg.Outage, cfg.OwnerArgs = []string{nemesis.ManagersCut}, nemesis.ShortestOutage, []string{"--keep-suspended", "1ms"}
	r := start(t, cfg)
	if len(r.Violations) != 1 || r.Violations[0].Invariant != "I11" || r.Violations[0].Broken != "an outage ended a lease" {
		t.Errorf("violations: %v", r.Violations)
	}
}

// TestOutagesThatMayLose: a restored store may have lost leases, and managers without a store
// keep them only while the same term lasts.
func TestOutagesThatMayLose(t *testing.T) {
	for _, test := range []struct {
		shape         cluster.Shape
		kind          string
		before, after leasehold.Term
		want          bool
	}{
		{cluster.Etcd, nemesis.ManagersKill, 1, 2, true},
		{cluster.External, "store-outage-kill", 0, 2, true},
		{cluster.External, nemesis.StoreRestore, 1, 2, false},
		{cluster.Flease, nemesis.ManagersCut, 1, 1, true},
		{cluster.Flease, nemesis.ManagersCut, 1, 2, false},
		{cluster.Flease, nemesis.ManagersPause, 1, 2, false},
		{cluster.Flease, nemesis.ManagersCut, 0, 0, false},
		{cluster.Embedded, nemesis.ManagersPause, 1, 2, false},
	} {
		r := &run{cfg: Config{Config: cluster.Config{Shape: test.shape}}}
		if got := r.losesNothing(test.kind, test.before, test.after); got != test.want {
			t.Errorf("%+v: got %t", test, got)
		}
	}
}

// TestUnreadableHistoryFailsTheRun: a history that cannot be read or written fails the run.
func TestUnreadableHistoryFailsTheRun(t *testing.T) {
	for name, dir := range map[string]string{"unreadable": t.TempDir(), "not kept": filepath.Join(t.TempDir(), "none")} {
		r := &run{cfg: Config{Config: cluster.Config{Dir: dir}}, failed: make(chan error, 1), book: check.New(nil, 0, 0), vitals: newWatch(false)}
		if r.called("c1", 0, strings.NewReader("{\n")) == nil || r.owned("o1", 0, strings.NewReader("half")) == nil {
			t.Errorf("%s: no error", name)
		}
		select {
		case err := <-r.failed:
			if !strings.HasPrefix(err.Error(), "the history of c1: ") {
				t.Errorf("%s: %v", name, err)
			}
		default:
			t.Errorf("%s: the run has not failed", name)
		}
	}
}

// TestCrashIsAViolation: a crash is a violation in the report; other errors only end the run.
func TestCrashIsAViolation(t *testing.T) {
	r := &run{}
	if err := errors.New("no more descriptors"); !errors.Is(r.blame(err), err) || r.blame(nil) != nil || len(r.report.Violations) > 0 {
		t.Errorf("violations: %v", r.report.Violations)
	}
	if err := r.blame(fmt.Errorf("after storm 1: %w", cluster.Crash{Err: errors.New("o1: signal: killed")})); err != nil || len(r.report.Violations) != 1 ||
		r.report.Violations[0].String() != "crash: a process ended by itself (1 times): o1: signal: killed" {
		t.Errorf("%v, violations: %v", err, r.report.Violations)
	}
}

// TestCrashOfAnInterruptedRunIsAViolation: a crash is a violation too if the run is interrupted at that time.
func TestCrashOfAnInterruptedRunIsAViolation(t *testing.T) {
	r := &run{failed: make(chan error, 1)}
	if err := r.unread(); err != nil {
		t.Errorf("error %v without a failure", err)
	}
	r.fail(cluster.Crash{Err: errors.New("m1: exit status 2")})
	if err := r.blame(r.unread()); err != nil || len(r.report.Violations) != 1 || r.report.Violations[0].Invariant != "crash" {
		t.Errorf("%v, violations: %v", err, r.report.Violations)
	}
}

// TestNamespacesAreNotLost: only managers without a store may lose a namespace, if all were down.
func TestNamespacesAreNotLost(t *testing.T) {
	for _, test := range []struct {
		shape cluster.Shape
		blank int
		fine  bool
	}{{cluster.Flease, 3, true}, {cluster.Flease, 2, false}, {cluster.Etcd, 3, false}, {cluster.External, 0, false}} {
		r := &run{cfg: Config{Config: cluster.Config{Shape: test.shape}}, cluster: &cluster.Cluster{Managers: make([]*cluster.Member, 3)}, book: check.New(nil, 0, 0)}
		if r.created("after storm 1", test.blank); r.book.Broken() == test.fine || r.report.Created != 1 {
			t.Errorf("%+v: %d created, broken %t", test, r.report.Created, r.book.Broken())
		}
	}
}

func TestConfigs(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "thesis"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		`--store "disk": want etcd, external, flease, cluster or all`:                            func(c *Config) { c.Shape = "disk" },
		"--for 0s and --faults 0: one of them must be set":                                       func(c *Config) { c.Faults = 0 },
		"--for -1s: want a time above 0":                                                         func(c *Config) { c.For = -time.Second },
		"--faults -1: want a number above 0":                                                     func(c *Config) { c.Faults = -1 },
		"--owners 0: want 1 to 100":                                                              func(c *Config) { c.Owners = 0 },
		"--callers 101: want 1 to 100":                                                           func(c *Config) { c.Callers = 101 },
		"--lease 1ms: want 1s to 1m":                                                             func(c *Config) { c.Lease = time.Millisecond },
		"--ttl 1ms: want 500ms to 1m":                                                            func(c *Config) { c.TTL = time.Millisecond },
		"--outage 1s: want 5s or more":                                                           func(c *Config) { c.Outage = time.Second },
		"--slack -1s: want 0s or more":                                                           func(c *Config) { c.Slack = -time.Second },
		"--dir " + full + ": want a directory that is empty or does not exist":                   func(c *Config) { c.Dir = full },
		"--kinds fire: no such fault; --kinds help lists them":                                   func(c *Config) { c.Kinds = []string{"loss", "fire"} },
		"--kinds upgrade: it requires --other":                                                   func(c *Config) { c.Kinds = []string{"upgrade"} },
		"--kinds store-kill: it requires --store external":                                       func(c *Config) { c.Kinds = []string{"store-kill"} },
		"--kinds manager-clocks-beyond: it requires --drift=beyond and --store etcd or external": func(c *Config) { c.Kinds = []string{"manager-clocks-beyond"} },
	} {
		c := DefaultConfig()
		c.Faults = 1
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	c := DefaultConfig()
	c.Faults = 1
	for _, dir := range []string{"", t.TempDir(), filepath.Join(full, "new")} {
		if c.Dir = dir; c.Validate() != nil {
			t.Errorf("--dir %s: %v", dir, c.Validate())
		}
	}
}

func TestReplay(t *testing.T) {
	c := DefaultConfig()
	c.Seed, c.Faults, c.Lease, c.Kinds, c.LeasesOff = 7, 10, 2*time.Second, []string{"loss", "delay"}, true
	const want = "leasehold-lab chaos --store etcd --seed 7 --faults 10 --kinds loss,delay --lease 2s --leases-off"
	if got := c.Replay(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c = DefaultConfig()
	c.Seed, c.For, c.Other, c.OtherFlag = 7, time.Minute, "/cache/1234", "oldest"
	if got, want := c.Replay(), "leasehold-lab chaos --store etcd --seed 7 --for 1m0s --other oldest"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRecoveriesAsFigures(t *testing.T) {
	c := DefaultConfig()
	narrow, wide := c.bound(false), c.bound(true)
	got := recoveries([]recovery{
		{1, 3 * time.Second, narrow, 0},
		{2, time.Second, narrow, 0},
		{3, 9 * time.Second, wide, time.Second},
		{4, 9 * time.Second, narrow, 2 * time.Second},
		{5, time.Minute, wide, 0},
	}, &c)
	want := Recoveries{
		Count: 5, BoundMillis: 5800, WiderMillis: 9400, SlackMillis: 10_000, Median: 9000, P99: 60_000, Max: 60_000, WithinBound: 3, Forgotten: 2,
		Late: []Late{{Storm: 4, Millis: 9000, StoreMillis: 2000}, {Storm: 5, Millis: 60_000}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}

// TestGrowthIsAViolation: what grows in a soak is found, and what does not is in the report.
func TestGrowthIsAViolation(t *testing.T) {
	w := newWatch(true)
	for i := range 100 {
		w.log.Add("m1", 7, leaks.Sample{Goroutines: float64(50 + i), Descriptors: 20})
	}
	w.log.Add("o1", 8, leaks.Sample{Goroutines: 1})
	var r Report
	found := w.judge(&r)
	if len(found) != 1 || found[0].Invariant != "I8" || !strings.HasPrefix(found[0].Text, "the goroutines of m1 were 8") {
		t.Errorf("found %v", found)
	}
	if len(r.Vitals) != 2 || r.ShortLives != 1 {
		t.Errorf("reported %+v", r)
	}
	if off := newWatch(false); off.judge(&r) != nil {
		t.Error("it judges without --soak")
	}
}
