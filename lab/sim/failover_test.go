package sim

import (
	"testing"

	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// Failovers in the middle of moves lose nothing that another process has.
func TestMoveFailovers(t *testing.T) {
	mix, err := Kinds().Parse("move-failover=30,move-range=10,drain=5,manager-resign=5")
	if err != nil {
		t.Fatal(err)
	}
	cfg := &Config{Managers: 3, Namespaces: 1, Faults: mix}
	s, err := engine.Campaign{Simulation: cfg, First: 1, Seeds: 300, Parallel: 2}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Failures {
		t.Errorf("seed %d: %v", f.Seed, f.Violation)
	}
	if n := s.Branches["nemesis: failover in a move"]; n < 100 {
		t.Errorf("%d failovers in moves: too few", n)
	}
}
