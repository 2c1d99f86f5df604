package sim

import (
	"cmp"
	"strconv"
	"time"

	"github.com/spf13/pflag"

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
	c.Managers, c.Owners, c.Lookups = cmp.Or(c.Managers, managers), cmp.Or(c.Owners, 3), cmp.Or(c.Lookups, 2)
	c.Duration = cmp.Or(c.Duration, 2*time.Minute)
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

// Flags are the flags that shape a world: together with the seed they determine all
// that happens in it.
func (c *Config) Flags() *pflag.FlagSet {
	var usual Config
	if err := usual.Validate(); err != nil {
		panic(err) // the zero Config is documented to be valid
	}
	c.Faults = usual.Faults
	flags := pflag.NewFlagSet("world", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.DurationVar(&c.Duration, "duration", usual.Duration, "how long faults go on in each world, in its own time")
	flags.IntVar(&c.Managers, "managers", usual.Managers, "managers in each world")
	flags.IntVar(&c.Owners, "owners", usual.Owners, "computers that run owners in each world")
	flags.IntVar(&c.Lookups, "lookups", usual.Lookups, "lookups in each world")
	flags.IntVar(&c.Namespaces, "namespaces", usual.Namespaces, "namespaces in each world, 1 or 2; 0 lets the seed choose")
	flags.Var(Kinds().MixFlag(&c.Faults), "faults", "a `mix` of faults: what strikes, and how often")
	flags.BoolVar(&c.Diskless, "diskless", false, "managers without a store: they agree among themselves who leads, and ask the\nowners what there is; then --managers is 3, unless given")
	flags.BoolVar(&c.Agents, "agents", false, "owners answer for other processes, which rely for a time on what they were told,\nas \"leasehold agent\" does; no state is moved")
	flags.BoolVar(&c.LeasesOff, "leases-off", false, "break the world on purpose, to see that the checks notice:\nowners believe in their leases for ever")
	flags.BoolVar(&c.EqualClocks, "equal-clocks", false, "break the world on purpose, to see that the checks notice:\nall clocks run at the same rate (which shows as branches never taken)")
	return flags
}

// FlagsParsed completes the configuration once its flags are parsed: the default number
// of managers depends on whether there is a store.
func (c *Config) FlagsParsed(flags *pflag.FlagSet) error {
	if !c.Diskless || flags.Changed("managers") {
		return nil
	}
	c.Managers = 0
	if err := c.Validate(); err != nil {
		return err
	}
	flags.Lookup("managers").DefValue = strconv.Itoa(c.Managers)
	return nil
}
