package fleasesim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A Kind says which assumption about clocks holds in a world.
type Kind uint8

// The kinds of worlds.
const (
	Any   Kind = iota // the seed chooses
	Wall              // wall clocks are within epsilon; monotonic clocks race, and stand still
	Mono              // monotonic clocks are within the drift bound; wall clocks drift, and are set
	Both              // both are as they should be
	Twins             // as Both, but two processes have the same id: no lease is safe until one has given way, all else is
	kinds
)

var kindNames = [kinds]string{"any", "wall", "mono", "both", "twins"}

func (k Kind) String() string { return kindNames[k] }

// KindNames lists the kinds, as [ParseKind] reads them.
func KindNames() []string { return kindNames[:] }

// ParseKind reads the name of a kind.
func ParseKind(s string) (Kind, error) {
	i := slices.Index(kindNames[:], s)
	if i < 0 {
		return 0, leasehold.Errorf("kind of world", leasehold.Invalid, s, "no such kind; there are %s", strings.Join(kindNames[:], ", "))
	}
	return Kind(i), nil
}

// Config is one simulated world, but for the seed.
type Config struct {
	Kind      Kind
	Processes int           // 3 to 7; 0 lets the seed choose
	Resources int           // 1 to 4; 0 lets the seed choose
	Duration  time.Duration // of the time with faults; default 15 s, which is as many leases
	Faults    Mix           // default [DefaultMix]
}

// Bounds on a world.
const (
	minProcesses = 3
	maxProcesses = 7
	maxResources = 4
	maxDuration  = time.Hour
)

// Validate fills in defaults and says what is wrong.
func (c *Config) Validate() error {
	if c.Duration == 0 {
		c.Duration = 15 * time.Second
	}
	if c.Faults == nil {
		c.Faults = DefaultMix()
	}
	bad := func(what, format string, args ...any) error {
		return leasehold.Errorf("simulation", leasehold.Invalid, what, format, args...)
	}
	switch {
	case c.Kind >= kinds:
		return bad("kind", "%d, want less than %d", c.Kind, kinds)
	case c.Processes != 0 && (c.Processes < minProcesses || c.Processes > maxProcesses):
		return bad("processes", "%d, want %d to %d, or 0 to let the seed choose", c.Processes, minProcesses, maxProcesses)
	case c.Resources < 0 || c.Resources > maxResources:
		return bad("resources", "%d, want 1 to %d, or 0 to let the seed choose", c.Resources, maxResources)
	case c.Duration < time.Second || c.Duration > maxDuration:
		return bad("duration", "%v, want 1s to %v", c.Duration, maxDuration)
	}
	for f, weight := range c.Faults {
		if weight < 0 || weight > 1000 {
			return bad(f.String(), "weight %d, want 0 to 1000", weight)
		}
	}
	return nil
}

// A Fault is a kind of trouble that the nemesis makes.
type Fault uint8

// The faults.
const (
	Crash     Fault = iota // a process dies, and comes back with no memory
	CrashAll               // all do, at about the same time
	Orphan                 // a holder is cut off, and all others of its group forget
	Pause                  // a process is stopped, while its clocks run on
	LinkCut                // two processes do not hear each other
	OneWay                 // one process does not hear another
	Isolate                // a process hears nobody, or nobody hears it, or both
	Loss                   // packets are lost
	Duplicate              // packets arrive twice, the second time perhaps much later
	Delay                  // packets take long, and overtake each other
	Rate                   // a monotonic clock changes its rate, as far as the world allows
	Step                   // a wall clock is set, as far as the world allows
	Slew                   // wall clocks drift, some of them together; only if the world allows it
	Starve                 // alarms are late
	Rewind                 // a process is taken back to what it was a while ago, and its monotonic clock with it
	Sprint                 // a process takes and releases a resource of its own as fast as it can
	faults
)

var faultNames = [faults]string{
	"crash", "crash-all", "orphan", "pause", "link-cut", "one-way", "isolate", "loss", "duplicate", "delay", "rate", "step", "slew", "starve", "rewind", "sprint",
}

func (f Fault) String() string { return faultNames[f] }

// FaultNames lists the faults, as [ParseMix] reads them.
func FaultNames() []string { return faultNames[:] }

// A Mix says how often each fault strikes, relative to the others. One that is
// not in it does not.
type Mix map[Fault]int

// DefaultMix has every fault.
func DefaultMix() Mix {
	return Mix{
		Crash: 10, CrashAll: 1, Orphan: 3, Pause: 8, LinkCut: 8, OneWay: 8, Isolate: 6, Loss: 5, Duplicate: 6, Delay: 8,
		Rate: 8, Step: 6, Slew: 6, Starve: 3, Rewind: 3, Sprint: 2,
	}
}

// ParseMix reads a mix: "default", "none", or a list such as "crash=3,loss=1". A
// list after "default," changes the default.
func ParseMix(s string) (Mix, error) {
	m := Mix{}
	for i, item := range strings.Split(s, ",") {
		name, value, found := strings.Cut(strings.TrimSpace(item), "=")
		if i == 0 && item == "default" {
			m = DefaultMix()
			continue
		}
		if i == 0 && item == "none" {
			continue
		}
		f := slices.Index(faultNames[:], name)
		weight, err := strconv.Atoi(value)
		if f < 0 || !found || err != nil {
			return nil, leasehold.Errorf("fault mix", leasehold.Invalid, item, "want default, none, or a fault and a weight, such as crash=3; there are %s", strings.Join(faultNames[:], ", "))
		}
		m[Fault(f)] = weight
	}
	maps.DeleteFunc(m, func(_ Fault, weight int) bool { return weight == 0 })
	return m, nil
}

// String writes the mix as [ParseMix] reads it.
func (m Mix) String() string {
	switch {
	case maps.Equal(m, DefaultMix()):
		return "default"
	case len(m) == 0:
		return "none"
	}
	var items []string
	for _, f := range slices.Sorted(maps.Keys(m)) {
		items = append(items, fmt.Sprintf("%v=%d", f, m[f]))
	}
	return strings.Join(items, ",")
}
