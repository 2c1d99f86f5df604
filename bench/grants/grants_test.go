package main

import (
	"os"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/bench/kit"
)

// TestMain lets the test's binary play the roles of processes, as the program does.
func TestMain(m *testing.M) {
	cast.Play(roles())
	os.Exit(m.Run())
}

// TestGrantee: as many owners as there should be are granted all that they should be,
// again and again.
func TestGrantee(t *testing.T) {
	s, err := beginSystem(t.Context(), 1, t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for name, c := range map[string]struct{ owners, joined int }{"a": {0, 6}, "b": {2, 2}} {
		g := &grantee{system: s, owners: c.owners}
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

func TestReport(t *testing.T) {
	turns := func(leases int) []cast.Turn { return []cast.Turn{{Leases: leases, Took: time.Second}} }
	r := &kit.Result{Question: "grants"}
	report(r, []entry{{name: nameJoins}, {name: nameLeases}, {name: nameEtcdLock}}, [][]cast.Turn{turns(100), turns(900), turns(300)}, true)
	if len(r.Headlines) != 2 || r.Headlines[0].Ratio != 0.3333 || r.Headlines[1].Ratio != 3 {
		t.Errorf("headlines %+v", r.Headlines)
	}
	if len(r.Losses) != 1 || r.Missed() != 0 {
		t.Errorf("losses %q, goals %+v", r.Losses, r.Goals)
	}
}
