package fleasesim

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

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

// The seeds of every test run. The command "leasehold-lab flease sim" runs more.
const manySeeds = 2000

func TestSeeds(t *testing.T) {
	s, err := engine.Campaign{Simulation: &Config{}, First: 1, Seeds: manySeeds, Parallel: 2}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Failures {
		t.Errorf("seed %d: %v\nreplay: go run ./cmd/leasehold-lab flease sim --seed %d --seeds 1 --trace", f.Seed, f.Violation, f.Seed)
	}
	if s.Seeds != manySeeds {
		t.Errorf("ran %d worlds, want %d", s.Seeds, manySeeds)
	}
	if err := s.Convincing(Kinds()); err != nil {
		t.Errorf("the worlds do not cover enough: %v", err)
	}
	for _, k := range []Kind{Wall, Mono, Both, Twins} {
		if s.Kinds[string(k)] == 0 {
			t.Errorf("there was no world of kind %v", k)
		}
	}
	t.Logf("%d worlds, %.0f simulated minutes", s.Seeds, s.Simulated.Minutes())
}

func TestSameSeedSameWorld(t *testing.T) {
	cfg := valid(t, Config{Duration: 10 * time.Second})
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
		s, err := engine.Campaign{Simulation: &Config{Duration: 5 * time.Second}, First: 5, Seeds: 50, Parallel: parallel}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, s.Hash)
	}
	if hashes[0] != hashes[1] || hashes[0] != hashes[2] {
		t.Errorf("hashes %x", hashes)
	}
}

// Without faults there is no violation, and no lease is lost.
func TestCalmWorlds(t *testing.T) {
	cfg := valid(t, Config{Kind: Both, Faults: engine.Mix{}})
	for seed := uint64(1); seed <= 50; seed++ {
		r := cfg.Run(seed, nil)
		if r.Violation != nil {
			t.Errorf("seed %d: %v", seed, r.Violation)
		}
		if n := r.Branches["lost"]; n > 0 {
			t.Errorf("seed %d: leases were lost %d times", seed, n)
		}
		if r.Branches["acquired"] == 0 {
			t.Errorf("seed %d: no lease was acquired", seed)
		}
	}
}

func TestTraceContainsEvents(t *testing.T) {
	var text strings.Builder
	cfg := valid(t, Config{Kind: Wall})
	for seed := uint64(1); seed <= 10; seed++ {
		cfg.Run(seed, &text)
	}
	for _, want := range []string{"starts", "crashes", "***", "wants r0", "tries r0", "promise r0", "acquired r0", "=== all faults end", "=== all resources are released"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the traces do not contain %q", want)
		}
	}
}

func TestInvalidConfigIsRejected(t *testing.T) {
	for _, test := range []struct {
		cfg  Config
		want string
	}{
		{Config{Kind: "flat"}, "kind"},
		{Config{Processes: 2}, "processes"},
		{Config{Processes: 8}, "processes"},
		{Config{Resources: 5}, "resources"},
		{Config{Duration: time.Millisecond}, "duration"},
		{Config{Faults: engine.Mix{"crash": -1}}, "crash"},
	} {
		if err := test.cfg.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want an error about %s", test.cfg, err, test.want)
		}
	}
	for _, bad := range []engine.Campaign{
		{Simulation: &Config{}}, {Simulation: &Config{}, Seeds: 1, Parallel: -1}, {Seeds: 1, Simulation: &Config{Processes: 1}},
	} {
		if _, err := bad.Run(t.Context()); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func TestKindsAreParsed(t *testing.T) {
	for _, name := range append(kinds, "flat") {
		var c Config
		err := errors.Join(c.Flags().Parse([]string{"--world", name}), c.Validate())
		if known := name != "flat"; known != (err == nil) || c.Kind != Kind(name) {
			t.Errorf("%q is parsed as %v, %v", name, c.Kind, err)
		}
	}
}
