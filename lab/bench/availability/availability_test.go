package availability

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/lab/chaos/lan"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// TestMain runs roles and managers in the test binary.
func TestMain(m *testing.M) {
	managers.Play()
	proc.Play(Roles())
	os.Exit(m.Run())
}

// newTestSite starts a site of two servers, with its managers.
func newTestSite(t *testing.T, config siteConfig) *site {
	t.Helper()
	group, err := managers.Start(t.Context(), t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(group.Close)
	config.namespace, config.racks, config.servers, config.lookups = "test", 2, max(1, config.processes), 1
	s, err := newSite(t.Context(), group, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func eventNamed(t *testing.T, all []event, name string) event {
	t.Helper()
	for _, e := range all {
		if e.name == name {
			return e
		}
	}
	t.Fatalf("no event %s", name)
	return event{}
}

// TestDrain: a server is shut down and returns, and no operation fails.
func TestDrain(t *testing.T) {
	s := newTestSite(t, siteConfig{})
	got, err := s.measureEvent(t.Context(), eventNamed(t, events("", nil, nil), "drain"))
	if err != nil || got.failed > 0 || got.service <= 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSupervised: a supervised server crashes in each way, and its keys do not wait for its lease, which is
// longer than the test.
func TestSupervised(t *testing.T) {
	memory, noMemory := newMemoryGroup()
	if noMemory == nil {
		t.Cleanup(func() { _ = os.Remove(memory) })
	}
	const lease = time.Hour
	s := newTestSite(t, siteConfig{supervised: true, processes: 2, timing: &leaseholdv1.Timing{Lease: int64(lease), Renew: int64(time.Second), Drift: 1.2}})
	for _, e := range events(memory, noMemory, nil) {
		if e.at != supervised {
			continue
		}
		if e.skip != "" {
			t.Logf("%s: SKIPPED: %s", e.name, e.skip)
			continue
		}
		workers := s.front.work(t.Context(), 10, watchPause, true)
		if err := e.inject(t.Context(), s); err != nil {
			t.Errorf("%s: %v", e.name, err)
		}
		s.killRack(0) // the others of the rack, too
		if err := s.waitForOwners(t.Context(), s.servers); err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		if _, failed := workers.end(); failed > 0 {
			t.Errorf("%s: %d operations failed", e.name, failed)
		}
		if err := e.repair(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
	}
}

// TestLostHost: the keys of a host that does not reply wait for its lease, and those of its supervisor.
func TestLostHost(t *testing.T) {
	const lease = 2 * time.Second
	s := newTestSite(t, siteConfig{supervised: true, timing: &leaseholdv1.Timing{Lease: int64(lease), Renew: int64(lease / 4), Drift: 1.2}})
	got, err := s.measureEvent(t.Context(), eventNamed(t, events("", nil, nil), "lost-host"))
	if err != nil || got.failed > 0 || got.service < lease {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestCutNetwork: the keys of a server whose network is cut wait for its lease, and it returns afterwards.
func TestCutNetwork(t *testing.T) {
	if err := lan.Available(); err != nil {
		t.Skip("SKIPPED, NOT TESTED: ", err)
	}
	const lease = 2 * time.Second
	config := distantConfig()
	config.racks, config.timing = 2, &leaseholdv1.Timing{Lease: int64(lease), Renew: int64(lease / 4), Drift: 1.2}
	s, err := newDistantSite(t.Context(), &report.Run{Dir: t.TempDir()}, config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.measureEvent(t.Context(), eventNamed(t, events("", nil, nil), "lost-network"))
	if err != nil || got.failed > 0 || got.service < lease {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestMemoryGroup(t *testing.T) {
	for text, want := range map[string]string{
		"4:memory:/a\n0::/b\n":       "/sys/fs/cgroup/memory/a memory.limit_in_bytes",
		"0::/b\n4:cpu,memory:/x\n":   "/sys/fs/cgroup/b memory.max",
		"0::/user.slice/session-1\n": "/sys/fs/cgroup/user.slice/session-1 memory.max",
		"":                           " ",
	} {
		if dir, limit := memoryGroup(text); dir+" "+limit != want {
			t.Errorf("%q: %s %s, want %s", text, dir, limit, want)
		}
	}
}

// TestReport: each event has its headlines and goals, and one that was not measured says so.
func TestReport(t *testing.T) {
	r := &report.Result{Benchmark: "availability"}
	all := events("", errors.New("not permitted"), nil)
	outcomes := make([][]outcome, len(all))
	for i, e := range all {
		if outcomes[i] = []outcome{{service: 70 * time.Millisecond, changes: time.Second}}; e.skip != "" {
			outcomes[i] = nil
		}
	}
	reportEvents(r, all, outcomes)
	reportReset(r, &resets{
		normal: []time.Duration{time.Millisecond}, dies: []time.Duration{time.Millisecond, 11 * time.Second}, back: []time.Duration{time.Second / 2},
		supervised: []time.Duration{time.Second},
	})
	if len(r.Headlines) != 12 || len(r.Goals) != 16 || r.Missed() != 0 {
		t.Errorf("%d headlines %+v, %d goals %+v", len(r.Headlines), r.Headlines, len(r.Goals), r.Goals)
	}
	if text := r.Sections[0].Table.Markdown(); !strings.Contains(text, "out of memory: NOT MEASURED: not permitted") {
		t.Error(text)
	}
}

// TestMissedGoals: each limit of a supervised crash is a goal.
func TestMissedGoals(t *testing.T) {
	crash := eventNamed(t, events("", nil, nil), "supervised-kill")
	for millis, want := range map[float64]int{70: 0, 100: 1, 200: 2} {
		r := &report.Result{}
		crash.report(r, report.Summarise([]float64{millis / 1000}))
		if r.Missed() != want {
			t.Errorf("%v ms: %+v, want %d missed", millis, r.Goals, want)
		}
	}
}

// TestFailoverGoals: a failover of more than 1.2 TTL misses its goal, except with an embedded store and a TTL that is shorter
// than its election.
func TestFailoverGoals(t *testing.T) {
	for _, c := range []struct {
		diskless bool
		ttl      time.Duration
		took     float64
		missed   int
	}{{true, time.Second, 1.1, 0}, {true, time.Second, 1.3, 1}, {false, time.Second, 1.3, 1}, {false, time.Second / 2, 0.9, 0}} {
		r := &report.Result{}
		reportFailovers(r, []*failover{{diskless: c.diskless, ttl: c.ttl, took: []float64{c.took}}})
		if r.Missed() != c.missed {
			t.Errorf("%+v: %+v", c, r.Goals)
		}
	}
}
