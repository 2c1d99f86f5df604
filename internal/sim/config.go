package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// Config is one simulated world, but for the seed.
type Config struct {
	Managers   int           // default 2
	Owners     int           // hosts that run owners; default 3
	Lookups    int           // default 2
	Namespaces int           // 1 or 2; 0 lets the seed choose
	Duration   time.Duration // of the time with faults; default 2 minutes
	Faults     Mix           // default [DefaultMix]

	// Diskless lets managers agree among themselves who leads, and keep all that
	// they know in memory. There is no store, and its faults do not happen.
	Diskless bool

	// Agents lets owners answer for other processes, which rely on what they were
	// told for some time.
	Agents bool

	// Graceful lets owners leave only after everything has been moved away, and
	// gives each an application that can. Then nothing is lost but by crashes.
	Graceful bool

	// The two switches below break the world on purpose, to see that the
	// checks notice.

	// LeasesOff makes owners believe in their leases for ever.
	LeasesOff bool
	// EqualClocks lets all clocks run at the same rate.
	EqualClocks bool
}

// Bounds on the size of a world.
const (
	maxProcesses = 200
	maxDuration  = 24 * time.Hour
)

// Validate fills in defaults and reports what is wrong.
func (c *Config) Validate() error {
	managers := 2
	if c.Diskless {
		managers = 3
	}
	for _, d := range []struct {
		field *int
		usual int
	}{{&c.Managers, managers}, {&c.Owners, 3}, {&c.Lookups, 2}} {
		if *d.field == 0 {
			*d.field = d.usual
		}
	}
	if c.Duration == 0 {
		c.Duration = 2 * time.Minute
	}
	if c.Faults == nil {
		c.Faults = DefaultMix()
	}
	bad := func(what string, format string, args ...any) error {
		return leasehold.Errorf("simulation", leasehold.Invalid, what, format, args...)
	}
	switch {
	case c.Managers < 1 || c.Owners < 1 || c.Lookups < 1:
		return bad("cluster size", "%d managers, %d owners, %d lookups: want at least one of each", c.Managers, c.Owners, c.Lookups)
	case c.Managers+c.Owners+c.Lookups > maxProcesses:
		return bad("cluster size", "%d processes, at most %d are possible", c.Managers+c.Owners+c.Lookups, maxProcesses)
	case c.Namespaces < 0 || c.Namespaces > 2:
		return bad("namespaces", "%d, want 1 or 2, or 0 to let the seed choose", c.Namespaces)
	case c.Namespaces > c.Owners:
		return bad("namespaces", "%d namespaces need as many owners, there are %d", c.Namespaces, c.Owners)
	case c.Duration < time.Second || c.Duration > maxDuration:
		return bad("duration", "%v, want 1s to %v", c.Duration, maxDuration)
	}
	return c.Faults.validate()
}

// A Mix says how often each kind of fault happens, relative to the others. A
// kind that is not in it does not happen.
type Mix map[Fault]int

// DefaultMix has every kind of fault but ManagerRelapse and StoreRestore, which take
// worlds for themselves.
func DefaultMix() Mix {
	return Mix{
		OwnerCrash: 10, OwnerPause: 8, OwnerSuspend: 3, OwnerLeave: 4, OwnerTwin: 3,
		ManagerCrash: 5, ManagerPause: 5, ManagerResign: 4, ManagerSuspend: 3,
		LookupCrash: 2, LookupPause: 3, LookupSuspend: 2,
		LinkCut: 10, LinkOneWay: 10, Isolate: 6, Loss: 5, Duplicate: 5, Delay: 6, Misroute: 4, Hostile: 2,
		StoreSlow: 3, StoreUnknown: 5, StoreDown: 3, StoreCut: 5, StoreStale: 4, StoreLag: 4,
		ClockRate: 6, ClockBeyond: 1, Starve: 4, PolicyBroken: 2, Reconfigure: 3, Delete: 1,
		Drain: 4, MoveRange: 4, MoveCrash: 6, Upcalls: 3, Outage: 3,
	}
}

// ParseMix reads a fault mix: "default", "none", or a list such as
// "owner-crash=3,loss=1". A list after "default," changes the default.
func ParseMix(s string) (Mix, error) {
	m := Mix{}
	for i, item := range strings.Split(s, ",") {
		name, value, found := strings.Cut(strings.TrimSpace(item), "=")
		if !found && i == 0 && name == "default" {
			m = DefaultMix()
			continue
		}
		if !found && i == 0 && name == "none" {
			continue
		}
		f, ok := faultByName(name)
		if !ok {
			return nil, leasehold.Errorf("fault mix", leasehold.Invalid, name, "no such fault; there are default, none, %s", strings.Join(FaultNames(), ", "))
		}
		weight, err := strconv.Atoi(value)
		if err != nil || !found {
			return nil, leasehold.Errorf("fault mix", leasehold.Invalid, item, "want a name and a weight, such as %s=3", name)
		}
		m[f] = weight
		if weight == 0 {
			delete(m, f)
		}
	}
	return m, m.validate()
}

func (m Mix) validate() error {
	for f, w := range m {
		if w < 0 || w > 1000 {
			return leasehold.Errorf("fault mix", leasehold.Invalid, f.String(), "weight %d, want 0 to 1000", w)
		}
	}
	return nil
}

// String writes the mix as [ParseMix] reads it.
func (m Mix) String() string {
	if maps.Equal(m, DefaultMix()) {
		return "default"
	}
	if len(m) == 0 {
		return "none"
	}
	var items []string
	for _, f := range slices.Sorted(maps.Keys(m)) {
		items = append(items, fmt.Sprintf("%v=%d", f, m[f]))
	}
	return strings.Join(items, ",")
}
