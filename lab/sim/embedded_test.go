package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// Managers that end together with the owners of their processes, under the same faults.
func TestEmbedded(t *testing.T) {
	for name, test := range map[string]struct {
		cfg   Config
		seeds int
	}{
		"--embedded":                         {Config{Embedded: true}, 400},
		"--embedded --managers 5 --owners 7": {Config{Embedded: true, Managers: 5, Owners: 7}, 100},
		"--embedded --supervised":            {Config{Embedded: true, Supervised: true}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				test.seeds /= 5
			}
			s, err := engine.Campaign{Simulation: &test.cfg, First: firstSeed, Seeds: test.seeds, Parallel: 1}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range s.Failures {
				t.Errorf("seed %d: %v\nreplay: go run ./cmd/leasehold-lab sim %s --seed %d --seeds 1 --trace", f.Seed, f.Violation, name, f.Seed)
			}
			for _, name := range []string{"node: census", "memcatalog: catalog lost", "store: state moved", "store: state lost"} {
				if s.Branches[name] < uint64(test.seeds)/4 {
					t.Errorf("%s %d times in %d worlds: too few", name, s.Branches[name], test.seeds)
				}
			}
		})
	}
}

// If one server after the other restarts, and each after its keys have moved, no state is lost, although each restart takes a
// manager along. These restarts do not wait until the managers are complete again, as an operator does: in some worlds a
// majority of the managers has no catalog at the same time, and the table of the leader before them is lost with moves in it.
func TestEmbeddedRollingRestartsLoseNothing(t *testing.T) {
	mix, err := Kinds().Parse("owner-leave=20,drain=5,move-range=5")
	if err != nil {
		t.Fatal(err)
	}
	cfg := valid(t, Config{Embedded: true, Managers: 5, Faults: mix, Graceful: true})
	const atStart = 2 // times at which a majority has no catalog: before and after the first leader
	restarts, moved, hasty, seeds := 0, uint64(0), uint64(0), uint64(200)
	if testing.Short() {
		seeds = 40
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		r := cfg.Run(seed, nil)
		if r.Violation != nil {
			t.Fatalf("seed %d: %v", seed, r.Violation)
		}
		restarts += int(r.Faults["owner-leave"])
		moved += r.Branches["store: state moved"]
		if r.Branches["memcatalog: catalog lost"] > atStart {
			hasty++
			continue
		}
		if lost := r.Branches["store: state lost"]; lost > 0 {
			t.Errorf("seed %d: %d ranges have lost their state", seed, lost)
		}
	}
	if restarts < int(seeds)*3 || moved < seeds*20 || hasty > seeds/5 {
		t.Errorf("%d restarts and %d moves in %d worlds, %d of them too hasty", restarts, moved, seeds, hasty)
	}
	t.Logf("%d ranges have moved in %d restarts of %d worlds", moved, restarts, seeds)
}

func TestEmbeddedFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--embedded":                         "3 managers, 3 owners",
		"--embedded --managers=5":            "5 managers, 5 owners",
		"--embedded --managers=5 --owners=7": "5 managers, 7 owners",
		"--embedded --managers=5 --owners=3": "an owner for each manager",
		"--embedded --namespaces=2":          "want one namespace",
		"--embedded --agents":                "no agents",
	} {
		var c Config
		flags := c.Flags()
		err := flags.Parse(strings.Fields(args))
		if err == nil {
			err = c.FlagsParsed(flags)
		}
		got := fmt.Sprintf("%d managers, %d owners", c.Managers, c.Owners)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}
