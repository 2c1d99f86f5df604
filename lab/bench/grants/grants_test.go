package grants

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// TestMain runs roles in the test binary.
func TestMain(m *testing.M) {
	locks.Play()
	managers.Play()
	os.Exit(m.Run())
}

// TestNewcomers: the wanted number of owners is granted all ranges, in several turns.
func TestNewcomers(t *testing.T) {
	s := testSystem(t)
	for name, c := range map[string]struct{ owners, joined int }{"a": {0, 6}, "b": {2, 2}} {
		g := &newcomers{system: s, owners: c.owners}
		for _, turn := range []string{"1", "2"} {
			got, err := g.Acquire(t.Context(), 6, name+turn)
			if err != nil || got.Leases != 6 || got.Took <= 0 || got.CPU <= 0 {
				t.Fatalf("%+v, %v", got, err)
			}
			held := 0
			for _, o := range g.joined {
				held += len(o.Leases())
			}
			if len(g.joined) != c.joined || held != 6 {
				t.Errorf("%d owners hold %d leases", len(g.joined), held)
			}
			if err := g.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

func testSystem(t *testing.T) *system {
	t.Helper()
	s, err := startSystem(t.Context(), 1, t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestReport(t *testing.T) {
	turns := func(leases int) []locks.Turn { return []locks.Turn{{Leases: leases, Took: time.Second}} }
	r := &report.Result{Benchmark: "grants"}
	all := []locks.Entry{{Name: nameNewcomers}, {Name: nameLeases}, {Name: nameEtcdLock}, {Name: nameEtcdNewcomers}, {Name: nameEtcdPut}}
	conclude(r, all, [][]locks.Turn{turns(60), turns(900), turns(300), turns(90), turns(450)})
	var ratios []float64
	for _, h := range r.Headlines {
		ratios = append(ratios, h.Ratio)
	}
	if diff := cmp.Diff([]float64{0.6667, 3, 2}, ratios); diff != "" {
		t.Errorf("ratios of %+v (-want +got):\n%s", r.Headlines, diff)
	}
	if len(r.Losses) != 1 || r.Missed() != 1 {
		t.Errorf("losses %q, goals %+v", r.Losses, r.Goals)
	}
}
