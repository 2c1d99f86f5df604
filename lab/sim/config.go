package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// Config is one simulated world, but for the seed.
type Config struct {
	Managers   int           // default 2
	Owners     int           // hosts that run owners; default 3
	Lookups    int           // default 2
	Namespaces int           // 1 or 2; 0 lets the seed choose
	Duration   time.Duration // of the time with faults; default 2 minutes
	Faults     engine.Mix    // default [Kinds].Default

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
		c.Faults = Kinds().Default()
	}
	bad := func(what string, format string, args ...any) error {
		return leasehold.Errorf("simulation", leasehold.ErrInvalid, what, format, args...)
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
	return Kinds().Validate(c.Faults)
}
