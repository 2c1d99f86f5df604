package sim

import (
	"testing"

	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// A store is restored from an old backup, while managers run or are restarted, and sometimes a second time
// from the same backup. No LSN or generation is used twice, and no process uses a lease or table that was
// lost.
func TestRestores(t *testing.T) {
	mix := Kinds().Default()
	mix[storeRestore] = 8
	s, err := engine.Campaign{Simulation: &Config{Faults: mix}, First: firstSeed, Seeds: 1500, Parallel: 2}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Failures {
		t.Errorf("seed %d: %v", f.Seed, f.Violation)
	}
	for name, least := range map[string]uint64{
		"election: history lost": 100, "election: uncertain": 100, "manager: rebased": 100, "store: log rebased": 100,
		"manager: log lost": 1, // one world in a thousand: a restore must hit a leader that writes
	} {
		if s.Branches[name] < least {
			t.Errorf("%s %d times, want at least %d: too few", name, s.Branches[name], least)
		}
	}
	if s.Faults[storeRestore] < 1500 {
		t.Errorf("%d restores: too few", s.Faults[storeRestore])
	}
}
