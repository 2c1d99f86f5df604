package sim

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// The ratio of clock rates is the drift bound of the protocol.
func TestRatesAreWithinTheDriftBound(t *testing.T) {
	if ratio := float64(fastest) / float64(slowest); ratio > float64(simTiming().Drift) || ratio < 0.9999*float64(simTiming().Drift) {
		t.Errorf("clocks differ by up to %v, the bound is %v", ratio, simTiming().Drift)
	}
}

func TestScenariosAreNotInTheDefaultMix(t *testing.T) {
	mix := Kinds().Default()
	scenarios := []string{managerRelapse, storeRestore, moveFailover}
	for _, kind := range scenarios {
		if _, err := Kinds().Parse("default," + kind + "=1"); err != nil {
			t.Error(err)
		}
		if mix[kind] != 0 {
			t.Errorf("%s is in the default mix", kind)
		}
	}
	if len(mix) != len(faults)-len(scenarios) {
		t.Errorf("the default mix has %d of %d faults, want all but %v", len(mix), len(faults), scenarios)
	}
}

func TestInvalidConfigIsRejected(t *testing.T) {
	for _, cfg := range []Config{
		{Managers: -1},
		{Owners: -2},
		{Lookups: -1},
		{Owners: 1000},
		{Namespaces: 3},
		{Namespaces: -1},
		{Owners: 1, Namespaces: 2},
		{Duration: time.Millisecond},
		{Duration: -1},
		{Duration: 1000 * time.Hour},
		{Faults: engine.Mix{"loss": -1}},
	} {
		if err := cfg.Validate(); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	for _, c := range []engine.Campaign{{}, {Seeds: -1}, {Seeds: 1, Parallel: -1}, {Seeds: 1, StopAfter: -1}, {Seeds: 1, Simulation: &Config{Owners: -1}}} {
		if c.Simulation == nil {
			c.Simulation = &Config{}
		}
		if _, err := c.Run(t.Context()); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestFaultNamesAreUnique(t *testing.T) {
	seen := map[string]bool{"": true}
	for _, name := range Kinds().Names() {
		if seen[name] {
			t.Errorf("two faults are called %q", name)
		}
		seen[name] = true
	}
}
