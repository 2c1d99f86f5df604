package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// Managers without a store run under the same faults, except for those of the store. A crashed manager has
// lost its memory.
func TestDisklessSeeds(t *testing.T) {
	const seeds = 800
	s, err := engine.Campaign{Simulation: &Config{Diskless: true}, First: firstSeed, Seeds: seeds, Parallel: 2}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Failures {
		t.Errorf("seed %d: %v\nreplay: go run ./cmd/leasehold-lab sim --diskless --seed %d --seeds 1 --trace", f.Seed, f.Violation, f.Seed)
	}
	for name, n := range s.Checks {
		if n == 0 {
			t.Errorf("%s was never checked", name)
		}
	}
	for _, name := range Kinds().Names() {
		if name == managerRelapse || name == moveFailover {
			continue // see TestRelapses and TestMoveFailovers
		}
		if happened := s.Faults[name] > 0; happened == strings.HasPrefix(name, "store-") {
			t.Errorf("injected fault %s: %t", name, happened)
		}
	}
	for _, name := range []string{
		"node: census", "node: hasty takeover", "memcatalog: catalog lost", "node: promise settled", "node: standby answers a lookup",
		"lease: acquired", "lease: lost", "lease: released", "lease: clock step",
		"store: state moved", "store: state lost", "manager: takeover renews", "manager: moved", "lookup: snapshot", "lookup: request passed on",
	} {
		if s.Branches[name] == 0 {
			t.Errorf("never reached: %s", name)
		}
	}
	t.Logf("%d worlds, %.0f simulated hours, %d censuses, %d checks", s.Seeds, s.Simulated.Hours(), s.Branches["node: census"], s.TotalChecks())
}

// If all applications move their state and only managers crash, no state is lost without a store either.
// Exceptions: no leader for longer than a lease, and two manager crashes in such fast succession that no
// owner has received a message of the leader in between.
func TestDisklessRollingRestartsLoseNothing(t *testing.T) {
	mix, err := Kinds().Parse("owner-leave=20,drain=5,move-range=5,manager-crash=2,manager-resign=1")
	if err != nil {
		t.Fatal(err)
	}
	cfg := valid(t, Config{Diskless: true, Managers: 5, Owners: 5, Namespaces: 1, Faults: mix, Graceful: true})
	worlds, excused, moved, censuses := 0, 0, uint64(0), uint64(0)
	for seed := uint64(1); seed <= 360; seed++ {
		r := cfg.Run(seed, nil)
		if r.Violation != nil {
			t.Fatalf("seed %d: %v", seed, r.Violation)
		}
		if r.Branches["owner: suspended"] > 0 || r.Branches["node: hasty takeover"] > 0 {
			continue
		}
		worlds++
		moved += r.Branches["store: state moved"]
		censuses += r.Branches["node: census"]
		lost, unproven := r.Branches["store: state lost"], r.Branches["owner: unproven"]
		if lost > unproven {
			t.Errorf("seed %d: %d ranges have lost their state, and %d ranges have no proven state", seed, lost, unproven)
		}
		if lost > 0 {
			excused++
		}
	}
	if excused > 2 {
		t.Errorf("in %d of %d worlds state was lost because an owner's lease had expired", excused, worlds)
	}
	if worlds < 100 || moved < 5000 || censuses < uint64(worlds+50) {
		t.Errorf("only %d ranges have moved in %d worlds with %d censuses: too few", moved, worlds, censuses)
	}
	t.Logf("%d ranges have moved in %d worlds with %d censuses; %d of them lost state because a lease expired", moved, worlds, censuses, excused)
}

// A catalog change that was made while the leader was stopped is not lost when the leader continues.
func TestRelapses(t *testing.T) {
	mix, err := Kinds().Parse("manager-relapse=5,reconfigure=10,delay=2")
	if err != nil {
		t.Fatal(err)
	}
	s, err := engine.Campaign{Simulation: &Config{Diskless: true, Managers: 3, Faults: mix}, First: firstSeed, Seeds: 300, Parallel: 2}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Failures {
		t.Errorf("seed %d: %v", f.Seed, f.Violation)
	}
	if s.Faults[managerRelapse] < 300 || s.Branches["memcatalog: catalog lost"] < 300 {
		t.Errorf("%d relapses, and the catalog was lost %d times: too few", s.Faults[managerRelapse], s.Branches["memcatalog: catalog lost"])
	}
}

func TestDisklessSameSeedSameWorld(t *testing.T) {
	cfg := valid(t, Config{Diskless: true, Duration: time.Minute})
	for seed := uint64(1); seed <= 20; seed++ {
		var text strings.Builder
		a, b := cfg.Run(seed, nil), cfg.Run(seed, &text)
		if a.Hash != b.Hash || a.Events != b.Events {
			t.Errorf("seed %d: hashes %x and %x: the same seed must give the same world, traced or not", seed, a.Hash, b.Hash)
		}
		if seed == 1 && !strings.Contains(text.String(), "has completed the census of ns0") {
			t.Error("the trace has no census")
		}
	}
}
