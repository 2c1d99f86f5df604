package sim

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testkit/quick"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// valid sets the defaults of a configuration.
func valid(t testing.TB, cfg Config) Config {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// The seeds of every test run. The command "leasehold-lab sim" runs more.
const (
	firstSeed = 1
	manySeeds = 2500
	fewSeeds  = 300 // with -short
)

func TestMain(m *testing.M) {
	quick.Without("^(TestRestores|TestDisklessSeeds|TestRelapses|TestOtherSizes|TestAgents|TestEqualClocksAreDetected|TestOutagesLoseNothing|TestRareWorlds)$")
	os.Exit(m.Run())
}

func TestSeeds(t *testing.T) {
	seeds := manySeeds
	if testing.Short() {
		seeds = fewSeeds
	}
	s, err := engine.Campaign{Simulation: &Config{}, First: firstSeed, Seeds: seeds, Parallel: 2}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Failures {
		t.Errorf("seed %d: %v\nreplay: go run ./cmd/leasehold-lab sim --seed %d --seeds 1 --trace", f.Seed, f.Violation, f.Seed)
	}
	if s.Seeds != seeds {
		t.Errorf("ran %d worlds, want %d", s.Seeds, seeds)
	}
	if err := s.Convincing(Kinds()); err != nil && !testing.Short() {
		t.Errorf("the worlds do not cover enough: %v", err)
	}
	t.Logf("%d worlds, %.0f simulated hours, %d checks", s.Seeds, s.Simulated.Hours(), s.TotalChecks())
}

// Clusters of other sizes have other interleavings.
func TestOtherSizes(t *testing.T) {
	for _, test := range []struct {
		flags string
		cfg   Config
		seeds int
	}{
		{"--managers 1 --owners 1", Config{Managers: 1, Owners: 1}, 300},
		{"--managers 3 --owners 8 --lookups 4", Config{Managers: 3, Owners: 8, Lookups: 4}, 200},
	} {
		s, err := engine.Campaign{Simulation: &test.cfg, First: 1, Seeds: test.seeds, Parallel: 2}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.Failures {
			t.Errorf("seed %d: %v\nreplay: go run ./cmd/leasehold-lab sim %s --seed %d --seeds 1 --trace", f.Seed, f.Violation, test.flags, f.Seed)
		}
	}
}

// If all applications move their state and only managers crash, no state is lost, however often owners are
// restarted, drained and rebalanced.
func TestRollingRestartsLoseNothing(t *testing.T) {
	mix, err := Kinds().Parse("owner-leave=20,drain=5,move-range=5,manager-crash=3,manager-resign=3")
	if err != nil {
		t.Fatal(err)
	}
	cfg := valid(t, Config{Managers: 4, Owners: 5, Namespaces: 1, Faults: mix, Graceful: true})
	worlds, moved := 0, uint64(0)
	for seed := uint64(1); seed <= 300; seed++ {
		r := cfg.Run(seed, nil)
		if r.Violation != nil {
			t.Fatalf("seed %d: %v", seed, r.Violation)
		}
		if r.Branches["owner: suspended"] > 0 {
			continue // no leader for longer than a lease costs state
		}
		worlds++
		moved += r.Branches["store: state moved"]
		if lost := r.Branches["store: state lost"]; lost > 0 {
			t.Errorf("seed %d: %d ranges have lost their state", seed, lost)
		}
	}
	if worlds < 100 || moved < 10000 {
		t.Errorf("only %d ranges have moved in %d worlds: too few", moved, worlds)
	}
	t.Logf("%d ranges have moved in %d worlds", moved, worlds)
}

// Leadership changes frequently for an hour, and each leader has consistent state.
func TestLeadershipFlaps(t *testing.T) {
	mix, err := Kinds().Parse("manager-crash=10,manager-resign=10,manager-pause=5,store-cut=5,isolate=2")
	if err != nil {
		t.Fatal(err)
	}
	for _, diskless := range []bool{false, true} {
		cfg := valid(t, Config{Managers: 3, Namespaces: 1, Faults: mix, Duration: time.Hour, Diskless: diskless})
		leaders := uint64(0)
		for seed := uint64(1); seed <= 20; seed++ {
			r := cfg.Run(seed, nil)
			if r.Violation != nil {
				t.Fatalf("diskless %t, seed %d: %v", diskless, seed, r.Violation)
			}
			leaders += r.Branches["election: elected"] + r.Branches["lease: acquired"]
		}
		if leaders < 20*100 {
			t.Errorf("diskless %t: %d leaders in 20 hours are too few", diskless, leaders)
		}
		t.Logf("diskless %t: %d leaders in 20 hours", diskless, leaders)
	}
}

func TestSameSeedSameWorld(t *testing.T) {
	cfg := valid(t, Config{Duration: 30 * time.Second})
	for seed := uint64(1); seed <= 20; seed++ {
		var text, again bytes.Buffer
		a, b, c := cfg.Run(seed, nil), cfg.Run(seed, &text), cfg.Run(seed, &again)
		if a.Hash != b.Hash || a.Events != b.Events || b.Hash != c.Hash {
			t.Errorf("seed %d: hashes %x, %x, %x: the same seed must give the same world, traced or not", seed, a.Hash, b.Hash, c.Hash)
		}
		if text.String() != again.String() {
			t.Errorf("seed %d: the traces differ", seed)
		}
	}
	if cfg.Run(1, nil).Hash == cfg.Run(2, nil).Hash {
		t.Error("different seeds have the same trace hash")
	}
}

func TestCampaignDoesNotDependOnParallelism(t *testing.T) {
	var hashes []uint64
	for _, parallel := range []int{1, 2, 7} {
		s, err := engine.Campaign{Simulation: &Config{Duration: 10 * time.Second}, First: 5, Seeds: 50, Parallel: parallel}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, s.Hash)
	}
	if hashes[0] != hashes[1] || hashes[0] != hashes[2] {
		t.Errorf("hashes %x", hashes)
	}
}

// The two tests below break the world on purpose: the checks must fail.

func TestLeasesOffIsDetected(t *testing.T) {
	s, err := engine.Campaign{Simulation: &Config{LeasesOff: true}, First: firstSeed, Seeds: 50, StopAfter: 1}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Failures) == 0 || !strings.HasPrefix(s.Failures[0].Invariant, "I1") {
		t.Errorf("owners that ignore the expiry of their leases cause no violation of I1: %v", s.Failures)
	}
}

func TestEqualClocksAreDetected(t *testing.T) {
	s, err := engine.Campaign{Simulation: &Config{EqualClocks: true}, First: firstSeed, Seeds: 500, Parallel: 2}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Convincing(Kinds()); err == nil || !strings.Contains(err.Error(), "clock") {
		t.Errorf("worlds with equal clocks pass the coverage check: %v", err)
	}
}

func TestTraceContainsEvents(t *testing.T) {
	var text strings.Builder
	cfg := valid(t, Config{LeasesOff: true})
	cfg.Run(violating(t), &text)
	for _, want := range []string{"starts", "leads in term 1", "committed in ns0", "***", "request", "reply", "!!! I1 exclusive violated"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the trace does not contain %q", want)
		}
	}
}

// violating returns a seed whose world has a violation with leases off.
func violating(t *testing.T) uint64 {
	s, err := engine.Campaign{Simulation: &Config{LeasesOff: true}, First: 1, Seeds: 50, StopAfter: 1}.Run(t.Context())
	if err != nil || len(s.Failures) == 0 {
		t.Fatal("no world has a violation", err)
	}
	return s.Failures[0].Seed
}
