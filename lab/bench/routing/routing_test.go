package routing

import (
	"testing"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// TestRoutersFind checks that each router finds an address for every name.
func TestRoutersFind(t *testing.T) {
	const servers = 30
	for _, start := range starters() {
		c, err := start(t.Context(), servers)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.close)
		got := c.find(0, nameCount)
		if want := nameCount * len(address(0)); !c.floor && got != want {
			t.Errorf("%s: the addresses have %d bytes, want %d", c.name, got, want)
		}
		if c.floor && got == 0 {
			t.Errorf("%s: every name is in the first range", c.name)
		}
		if c.pieces < servers {
			t.Errorf("%s has %d pieces for %d servers", c.name, c.pieces, servers)
		}
	}
}

// TestConclude: the headlines name all peers, and a faster one is a loss.
func TestConclude(t *testing.T) {
	costs := func(name string, floor bool, ns float64) result {
		s := report.Standing{Nanoseconds: report.Summary{Median: ns}, Turns: []float64{ns}}
		return result{&router{name: name, floor: floor}, s, s}
	}
	r := &report.Run{Result: &report.Result{}}
	conclude(r, usualServers, []result{
		costs(nameLookup, false, 30), costs(nameIndex, true, 20),
		costs(nameConsistent, false, 25), costs(nameConsistentLarge, false, 60), costs(nameRendezvous, false, 900),
	})
	if len(r.Headlines) != 4 || len(r.Sections[0].Table.Rows) != 5 {
		t.Errorf("%+v, %+v", r.Headlines, r.Sections)
	}
	for _, g := range r.Goals {
		if !g.Met {
			t.Errorf("missed: %+v", g)
		}
	}
	if len(r.Losses) != 3 { // one core, all cores, and the lower bound
		t.Errorf("losses %q", r.Losses)
	}
}
