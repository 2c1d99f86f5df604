package sim

import (
	"testing"
	"time"
)

// Managers, the store and the network fail for seconds to hours, and managers crash in between. No owner
// fails: each lease that ends is granted to another owner, and no state is lost. I11 checks each end.
func TestOutagesLoseNothing(t *testing.T) {
	for _, faults := range []string{"outage=10", "outage=10,manager-crash=3"} {
		t.Run(faults, func(t *testing.T) {
			mix, err := Kinds().Parse(faults)
			if err != nil {
				t.Fatal(err)
			}
			cfg := valid(t, Config{Namespaces: 1, Faults: mix, Graceful: true})
			var resumed, suspended uint64
			longest := time.Duration(0)
			for seed := uint64(1); seed <= 150; seed++ {
				r := cfg.Run(seed, nil)
				if r.Violation != nil {
					t.Fatalf("seed %d: %v", seed, r.Violation)
				}
				suspended += r.Branches["owner: suspended"]
				resumed += r.Branches["owner: resumed"]
				longest = max(longest, r.Simulated)
				if lost := r.Branches["store: state lost"]; lost > 0 {
					t.Errorf("seed %d: %d ranges have lost their state", seed, lost)
				}
				if again := cfg.Run(seed, nil); seed <= 5 && again.Hash != r.Hash {
					t.Errorf("seed %d: hashes %x and %x: the same seed must give the same world", seed, r.Hash, again.Hash)
				}
			}
			if suspended < 100 || resumed < 100 || longest < 30*time.Minute {
				t.Errorf("%d suspensions, %d resumed, the longest world %v: too few", suspended, resumed, longest)
			}
			t.Logf("%d suspensions, %d resumed, the longest world %v", suspended, resumed, longest)
		})
	}
}

// Worlds with a former bug of the machines that few other worlds show.
func TestRareWorlds(t *testing.T) {
	for _, test := range []struct {
		seed   uint64
		faults string
		cfg    Config
		bug    string
	}{
		{9008427, "default", Config{}, "a late message of an ended session ends the leases of the next one"},
		{30011063, "default,store-restore=8", Config{Managers: 1, Owners: 1}, "a lookup waits for the reply to a request that the leader dropped while it waited"},
		{40001578, "default,outage=8", Config{Managers: 1, Owners: 1}, "owners that are kept past their deadlines take the seats of others"},
		{61027247, "default,store-restore=8", Config{}, "owners are expired because another owner leaves"},
		{13095, "owner-pause=6,owner-leave=10,link-one-way=6,isolate=10,loss=4,drain=6", Config{Owners: 2, Namespaces: 1}, "a drained owner keeps a range, because the owner of the adjacent range has left first"},
	} {
		mix, err := Kinds().Parse(test.faults)
		if err != nil {
			t.Fatal(err)
		}
		test.cfg.Faults = mix
		cfg := valid(t, test.cfg)
		if r := cfg.Run(test.seed, nil); r.Violation != nil {
			t.Errorf("seed %d (%s): %v", test.seed, test.bug, r.Violation)
		}
	}
}
