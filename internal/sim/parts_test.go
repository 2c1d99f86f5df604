package sim

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/mono"
)

func TestClock(t *testing.T) {
	for _, r := range []rate{slowest, trueRate, fastest, 400_001} {
		c := clock{since: 1e9, base: 77, rate: r}
		for _, d := range []time.Duration{0, 1, time.Millisecond + 1, 12 * time.Second, 30 * time.Hour} {
			want := mono.Instant(77 + float64(d)*float64(r)/1e6)
			if got := c.at(1e9 + int64(d)); math.Abs(float64(got-want)) > 1e-9*float64(want)+1 {
				t.Errorf("rate %d after %v: shows %v, want %v", r, d, got, want)
			}
			i := mono.Instant(77 + d)
			at := c.when(i)
			if c.at(at) < i || at > c.since && c.at(at-1) >= i {
				t.Errorf("rate %d: first shows %v at %d, but shows %v then and %v just before", r, i, at, c.at(at), c.at(at-1))
			}
		}
	}
	c := clock{since: 0, base: 5, rate: fastest}
	c.run(1e9, 0)
	if c.at(5e9) != c.at(1e9) || c.when(c.at(1e9)+1) != math.MaxInt64 {
		t.Error("a clock that stands still does not")
	}
	c.run(5e9, slowest)
	if c.at(6e9) <= c.at(5e9) {
		t.Error("a clock that was stopped does not go on")
	}
}

// The bound on clock rates is the one that the protocol is told.
func TestRatesAreWithinTheDriftBound(t *testing.T) {
	if ratio := float64(fastest) / float64(slowest); ratio > float64(simTiming().Drift) || ratio < 0.9999*float64(simTiming().Drift) {
		t.Errorf("clocks differ by up to %v, the bound is %v", ratio, simTiming().Drift)
	}
}

func TestParseMix(t *testing.T) {
	m, err := ParseMix("owner-crash=3, loss=1")
	if err != nil || len(m) != 2 || m[OwnerCrash] != 3 || m[Loss] != 1 {
		t.Errorf("got %v, %v", m, err)
	}
	m, err = ParseMix("default,loss=0")
	if _, there := m[Loss]; err != nil || there || len(m) != len(DefaultMix())-1 {
		t.Errorf("got %v, %v", m, err)
	}
	for _, text := range []string{"default", "none", "owner-crash=3,loss=1"} {
		m, err := ParseMix(text)
		if err != nil || m.String() != text {
			t.Errorf("%q is read as %v, %v", text, m, err)
		}
	}
	_, relapses := DefaultMix()[ManagerRelapse]
	_, restores := DefaultMix()[StoreRestore]
	if relapses || restores || len(DefaultMix()) != int(faults)-2 {
		t.Errorf("the default mix has %d of %d faults, want all but two", len(DefaultMix()), faults)
	}
	for text, want := range map[string]string{
		"earthquake=1": "no such fault", "loss": "a weight", "loss=x": "a weight", "loss=-1": "0 to 1000", "": "no such fault", "loss=1,default": "no such fault",
	} {
		if _, err := ParseMix(text); err == nil || !strings.Contains(err.Error(), want) || leasehold.KindOf(err) != leasehold.Invalid {
			t.Errorf("%q: error %v, want one that says %q", text, err, want)
		}
	}
}

func TestConfigRefusesNonsense(t *testing.T) {
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
		{Faults: Mix{Loss: -1}},
	} {
		if err := cfg.Validate(); leasehold.KindOf(err) != leasehold.Invalid {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	for _, c := range []Campaign{{}, {Seeds: -1}, {Seeds: 1, Parallel: -1}, {Seeds: 1, StopAfter: -1}, {Seeds: 1, Config: Config{Owners: -1}}} {
		if _, err := c.Run(t.Context()); leasehold.KindOf(err) != leasehold.Invalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestEveryNameIsThere(t *testing.T) {
	for i := range invariants {
		if i.String() == "" {
			t.Errorf("invariant %d has no name", i)
		}
	}
	for f := range faults {
		if g, ok := faultByName(f.String()); !ok || g != f {
			t.Errorf("fault %d is called %q, which means %v", f, f, g)
		}
	}
}
