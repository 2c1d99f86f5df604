package fleasesim

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// valid returns the configuration with its defaults filled in.
func valid(t testing.TB, cfg Config) Config {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// The seeds of every test run. More are run by the command: leasehold flease sim.
const manySeeds = 2000

func TestSeeds(t *testing.T) {
	s, err := Campaign{First: 1, Seeds: manySeeds, Parallel: 2}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Failures {
		t.Errorf("seed %d: %v\nreplay: go run ./cmd/leasehold flease sim --seed %d --seeds 1 --trace", f.Seed, f.Violation, f.Seed)
	}
	if s.Seeds != manySeeds {
		t.Errorf("ran %d worlds, want %d", s.Seeds, manySeeds)
	}
	if err := s.Convincing(); err != nil {
		t.Errorf("the worlds are not rich enough: %v", err)
	}
	for _, k := range []Kind{Wall, Mono, Both, Twins} {
		if s.Kinds[k.String()] == 0 {
			t.Errorf("there was no world of kind %v", k)
		}
	}
	t.Logf("%d worlds, %.0f simulated minutes, %.0f events/s", s.Seeds, s.Simulated.Minutes(), s.Speed())
}

func TestSameSeedSameWorld(t *testing.T) {
	cfg := valid(t, Config{Duration: 10 * time.Second})
	for seed := uint64(1); seed <= 20; seed++ {
		var text, again bytes.Buffer
		a, b, c := Run(cfg, seed, nil), Run(cfg, seed, &text), Run(cfg, seed, &again)
		if a.Hash != b.Hash || a.Events != b.Events || b.Hash != c.Hash {
			t.Errorf("seed %d: hashes %x, %x, %x: the same seed must give the same world, watched or not", seed, a.Hash, b.Hash, c.Hash)
		}
		if text.String() != again.String() {
			t.Errorf("seed %d: the traces differ", seed)
		}
	}
	if Run(cfg, 1, nil).Hash == Run(cfg, 2, nil).Hash {
		t.Error("different seeds have the same trace hash")
	}
}

func TestCampaignDoesNotDependOnParallelism(t *testing.T) {
	var hashes []uint64
	for _, parallel := range []int{1, 2, 7} {
		s, err := Campaign{Config: Config{Duration: 5 * time.Second}, First: 5, Seeds: 50, Parallel: parallel}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, s.Hash)
	}
	if hashes[0] != hashes[1] || hashes[0] != hashes[2] {
		t.Errorf("hashes %x", hashes)
	}
}

// Without faults nothing is violated, and nobody loses a lease.
func TestCalmWorlds(t *testing.T) {
	cfg := valid(t, Config{Kind: Both, Faults: Mix{}})
	for seed := uint64(1); seed <= 50; seed++ {
		r := Run(cfg, seed, nil)
		if r.Violation != nil {
			t.Errorf("seed %d: %v", seed, r.Violation)
		}
		if n := r.Notices["lost"]; n > 0 {
			t.Errorf("seed %d: leases were lost %d times", seed, n)
		}
		if r.Notices["acquired"] == 0 {
			t.Errorf("seed %d: nobody got anything", seed)
		}
	}
}

func TestTraceTellsTheStory(t *testing.T) {
	var text strings.Builder
	cfg := valid(t, Config{Kind: Wall})
	for seed := uint64(1); seed <= 10; seed++ {
		Run(cfg, seed, &text)
	}
	for _, want := range []string{"starts", "dies", "***", "wants r0", "tries r0", "promise r0", "acquired r0", "=== all faults end", "=== all is released"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the traces do not say %q", want)
		}
	}
}

// The clock is what everything rests on.
func TestClock(t *testing.T) {
	for _, r := range []rate{slowest, trueRate, fastest, 300_000, 3_000_000} {
		c := clock{since: worldStart, base: 7, rate: r}
		for _, shows := range []int64{8, 1000, int64(time.Second), int64(time.Hour) + 3} {
			at := c.when(shows)
			if c.at(at) < shows || c.at(at-1) >= shows {
				t.Errorf("rate %d: it shows %d at %d, not for the first time", r, shows, at)
			}
		}
	}
	still := clock{since: worldStart, base: 7}
	if still.at(worldStart+1e9) != 7 || still.when(8) < worldStart+int64(time.Hour) {
		t.Error("a clock that stands still moves")
	}
}

func TestConfigSaysWhatIsWrong(t *testing.T) {
	for _, test := range []struct {
		cfg  Config
		want string
	}{
		{Config{Kind: kinds}, "kind"},
		{Config{Processes: 2}, "processes"},
		{Config{Processes: 8}, "processes"},
		{Config{Resources: 5}, "resources"},
		{Config{Duration: time.Millisecond}, "duration"},
		{Config{Faults: Mix{Crash: -1}}, "crash"},
	} {
		if err := test.cfg.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want something about %s", test.cfg, err, test.want)
		}
	}
	for _, bad := range []Campaign{{Seeds: 0}, {Seeds: 1, Parallel: -1}, {Seeds: 1, Config: Config{Processes: 1}}} {
		if _, err := bad.Run(t.Context()); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func TestParsing(t *testing.T) {
	for _, text := range []string{"default", "none", "crash=3", "crash=1,slew=2"} {
		m, err := ParseMix(text)
		if err != nil || m.String() != text {
			t.Errorf("%q is read as %q, %v", text, m, err)
		}
	}
	if m, err := ParseMix("default,crash=0"); err != nil || m[Crash] != 0 || m[Loss] == 0 {
		t.Errorf("a changed default is %v, %v", m, err)
	}
	for _, text := range []string{"", "crash", "crash=x", "flood=1", "loss=1,none"} {
		if _, err := ParseMix(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	for _, name := range KindNames() {
		if k, err := ParseKind(name); err != nil || k.String() != name {
			t.Errorf("%q is read as %v, %v", name, k, err)
		}
	}
	if _, err := ParseKind("flat"); err == nil {
		t.Error("a kind that there is not is accepted")
	}
}
