package sim

import "testing"

// A store that is restored from an old backup, while managers run or are started again, and now and
// then a second time from the same one, gives no number out again, and nobody believes in anything that
// was lost.
func TestRestores(t *testing.T) {
	mix := DefaultMix()
	mix[StoreRestore] = 8
	s, err := Campaign{Config: Config{Faults: mix}, First: firstSeed, Seeds: 1500, Parallel: 2}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Failures {
		t.Errorf("seed %d: %v", f.Seed, f.Violation)
	}
	for _, name := range []string{"election: forgotten", "election: uncertain", "manager: log forgotten", "manager: rebased", "store: log rebased"} {
		if s.Branches[name] < 3 {
			t.Errorf("%s %d times: that proves little", name, s.Branches[name])
		}
	}
	if s.Faults[StoreRestore.String()] < 1500 {
		t.Errorf("%d restores: that proves little", s.Faults[StoreRestore.String()])
	}
}
