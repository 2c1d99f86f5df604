package scale

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// TestMain runs roles and managers in the test binary.
func TestMain(m *testing.M) {
	managers.Play()
	proc.Play(Roles())
	os.Exit(m.Run())
}

// TestTestbed: clients of a few managers settle, and settle again after a restart of all.
func TestTestbed(t *testing.T) {
	s := size{name: "tiny", managers: 3, owners: 4, lookups: 9}
	b, err := newTestbed(t.Context(), &report.Run{Dir: t.TempDir()}, s)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := b.during(func() error { return b.restart(10 * time.Millisecond) })
	if err != nil || l.Bytes <= 0 || l.All < l.CPU {
		t.Errorf("%+v, %v", l, err)
	}
	n, err := b.settle(t.Context(), s.lookups)
	if err != nil || n.Spurious() != 0 || n.Strange != 0 {
		t.Errorf("%+v, %v", n, err)
	}
}

// TestConclude: a manager that takes too much of a core misses its goal.
func TestConclude(t *testing.T) {
	f := &finding{size: sizes()[1], quiet: []load{{CPU: 12, Bytes: 4000}}, counts: loadgen.Counts{Share: 1}}
	r := &report.Result{Benchmark: "scale"}
	conclude(r, []*finding{f})
	if len(r.Headlines) != 1 || r.Headlines[0].Name != "scale.5x-quiet" || r.Headlines[0].Ratio != 0.8333 {
		t.Errorf("headlines %+v", r.Headlines)
	}
	for _, g := range r.Goals {
		if want := !strings.Contains(g.Want, "10 % of a core"); g.Met != want {
			t.Errorf("%+v", g)
		}
	}
}

// TestOutageGoals: losses and leases that are not resumed miss goals.
func TestOutageGoals(t *testing.T) {
	good := func() *outageFinding {
		return &outageFinding{
			size: size{owners: 2, lookups: 3}, ranges: 64_000, resumed: time.Second, contacts: 3, restored: libraryLookups,
			after: loadgen.Report{Same: 2, Suspended: 64_000},
		}
	}
	for name, change := range map[string]func(*outageFinding){
		"":                 func(*outageFinding) {},
		"no lease ends":    func(f *outageFinding) { f.after.Revoked = 1 },
		"reports a loss":   func(f *outageFinding) { f.losses = 1 },
		"contact again":    func(f *outageFinding) { f.contacts = 2 },
		"resumed within":   func(f *outageFinding) { f.resumed = time.Minute },
		"suspended again":  func(f *outageFinding) { f.after.Suspended++ },
		"the one before":   func(f *outageFinding) { f.after.Same = 1 },
		"of 64,000 ranges": func(f *outageFinding) { f.ranges, f.after.Suspended = 9, 9 },
	} {
		f, r := good(), &report.Result{}
		change(f)
		addOutage(r, f)
		for _, g := range r.Goals {
			if missed := name != "" && strings.Contains(g.Want, name); g.Met == missed {
				t.Errorf("%q: %+v", name, g)
			}
		}
	}
}

// TestSoakGoals: a lease that is suspended without a failure misses a goal.
func TestSoakGoals(t *testing.T) {
	for suspended, want := range []int{3, 2} {
		r := &report.Result{}
		addSoak(r, &soakFinding{size: size{owners: 2, soak: "fast"}, owners: loadgen.Report{Same: 2, Suspended: suspended}})
		met := 0
		for _, g := range r.Goals {
			if g.Met {
				met++
			}
		}
		if met != want || len(r.Goals) != 3 {
			t.Errorf("%d suspended: %+v", suspended, r.Goals)
		}
	}
}
