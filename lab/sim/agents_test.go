package sim

import (
	"testing"

	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// Owners of agents run under the same faults: no other owner has a key while a client of an agent relies on
// its answer.
func TestAgents(t *testing.T) {
	for name, cfg := range map[string]Config{"with a store": {Agents: true}, "without": {Agents: true, Diskless: true}} {
		t.Run(name, func(t *testing.T) {
			const seeds = 300
			s, err := engine.Campaign{Simulation: &cfg, First: firstSeed, Seeds: seeds, Parallel: 2}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range s.Failures {
				t.Errorf("seed %d: %v\nreplay: go run ./cmd/leasehold-lab sim --agents --seed %d --seeds 1 --trace (with --diskless, if there is no store)", f.Seed, f.Violation, f.Seed)
			}
			for _, name := range []string{"owner: promised", "owner: held back for a promise"} {
				if s.Branches[name] < seeds {
					t.Errorf("%s %d times in %d worlds: too few", name, s.Branches[name], seeds)
				}
			}
			t.Logf("%d promises, %d of them delayed a release", s.Branches["owner: promised"], s.Branches["owner: held back for a promise"])
		})
	}
}
