package sim

import (
	"testing"

	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// With supervisors, notices are lost, late, duplicated and forged, and cross renewals, moves and failovers. None is
// honoured while its process runs, and after a crash without other faults the ranges have other owners at once.
func TestSupervised(t *testing.T) {
	for name, cfg := range map[string]Config{"with a store": {Supervised: true}, "without": {Supervised: true, Diskless: true}} {
		t.Run(name, func(t *testing.T) {
			seeds := 300
			if testing.Short() {
				seeds = 60
			}
			s, err := engine.Campaign{Simulation: &cfg, First: firstSeed, Seeds: seeds, Parallel: 2}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range s.Failures {
				t.Errorf("seed %d: %v\nreplay: go run ./cmd/leasehold-lab sim --supervised --seed %d --seeds 1 --trace (with --diskless, if there is no store)", f.Seed, f.Violation, f.Seed)
			}
			for _, name := range []string{"death: recorded", "death: unknown", "death: refused", "death: undecided", "death: at the end", "manager: died"} {
				if s.Branches[name] < uint64(seeds)/4 {
					t.Errorf("%s %d times in %d worlds: too few", name, s.Branches[name], seeds)
				}
			}
			t.Logf("%d processes died, %d late messages", s.Branches["manager: died"], s.Branches["manager: late message"])
		})
	}
}
