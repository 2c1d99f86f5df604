package sim

import (
	"testing"
	"time"
)

// Managers, the store and the network fail for seconds to hours, and managers crash in between.
// No owner fails: leases are resumed, and what ends goes to another owner, which I11 checks.
// Ranges lost are logged only: a leader still expires an owner that returns later than others.
func TestOutages(t *testing.T) {
	for _, faults := range []string{"outage=10", "outage=10,manager-crash=3"} {
		t.Run(faults, func(t *testing.T) {
			mix, err := ParseMix(faults)
			if err != nil {
				t.Fatal(err)
			}
			cfg := valid(t, Config{Namespaces: 1, Faults: mix, Graceful: true})
			var resumed, suspended, lost uint64
			longest := time.Duration(0)
			for seed := uint64(1); seed <= 60; seed++ {
				r := Run(cfg, seed, nil)
				if r.Violation != nil {
					t.Fatalf("seed %d: %v", seed, r.Violation)
				}
				suspended += r.Branches["owner: suspended"]
				resumed += r.Branches["owner: resumed"]
				longest = max(longest, r.Simulated)
				lost += r.Branches["store: state lost"]
				if seed <= 5 && Run(cfg, seed, nil).Hash != r.Hash {
					t.Errorf("seed %d: the same seed must give the same world", seed)
				}
			}
			if suspended < 100 || resumed < 100 || longest < 30*time.Minute {
				t.Errorf("%d suspensions, %d resumed, the longest world %v: that proves little", suspended, resumed, longest)
			}
			t.Logf("%d suspensions, %d resumed, %d ranges lost, the longest world %v", suspended, resumed, lost, longest)
		})
	}
}
