package sim

import (
	"cmp"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// Config describes a simulated world. Together with the seed it determines every event.
type Config struct {
	Managers   int           // default 2
	Owners     int           // hosts that run owners; default 3
	Lookups    int           // default 2
	Namespaces int           // 1 or 2; 0 lets the seed choose
	Duration   time.Duration // of the phase with faults; default 2 minutes
	Faults     engine.Mix    // default [Kinds].Default

	// Diskless runs managers without a store: they elect the leader by a Flease lease, and keep all state in
	// memory. There are no faults of the store.
	Diskless bool

	// Agents runs owners that answer other processes. These rely on the answer for a limited time.
	Agents bool

	// Supervised runs most owners under supervisors, which report their ends to the managers.
	Supervised bool

	// Embedded runs the managers inside the processes of the first owners, as package cluster does. It includes
	// Diskless, and has one namespace.
	Embedded bool

	// Graceful lets owners leave only after all their ranges have moved, and gives each owner an application
	// that can move state. Then only crashes lose state.
	Graceful bool

	// The two switches below break the world on purpose, to test the checks.

	// LeasesOff makes owners ignore the expiry of their leases.
	LeasesOff bool
	// EqualClocks makes all clocks run at the same rate.
	EqualClocks bool
}

// Bounds on the size of a world.
const (
	maxProcesses = 200
	maxDuration  = 24 * time.Hour
)

// Validate sets defaults and returns an error for invalid values.
func (c *Config) Validate() error {
	managers, owners := 2, 3
	if c.Embedded {
		c.Diskless, owners = true, cmp.Or(c.Managers, owners)
		c.Namespaces = cmp.Or(c.Namespaces, 1)
	}
	if c.Diskless {
		managers = 3
	}
	c.Managers, c.Owners, c.Lookups = cmp.Or(c.Managers, managers), cmp.Or(c.Owners, owners), cmp.Or(c.Lookups, 2)
	c.Duration = cmp.Or(c.Duration, 2*time.Minute)
	if c.Faults == nil {
		c.Faults = Kinds().Default()
	}
	bad := func(what string, format string, args ...any) error {
		return leasehold.Errorf("simulation", leasehold.ErrInvalid, what, format, args...)
	}
	switch {
	case c.Managers < 1 || c.Owners < 1 || c.Lookups < 1:
		return bad("cluster size", "%d managers, %d owners, %d lookups: at least one of each is required", c.Managers, c.Owners, c.Lookups)
	case c.Managers+c.Owners+c.Lookups > maxProcesses:
		return bad("cluster size", "%d processes, at most %d are allowed", c.Managers+c.Owners+c.Lookups, maxProcesses)
	case c.Namespaces < 0 || c.Namespaces > 2:
		return bad("namespaces", "%d, want 1 or 2, or 0 to let the seed choose", c.Namespaces)
	case c.Namespaces > c.Owners:
		return bad("namespaces", "%d namespaces need as many owners, there are %d", c.Namespaces, c.Owners)
	case c.Embedded && (c.Namespaces != 1 || c.Owners < c.Managers || c.Agents):
		return bad("embedded", "%d namespaces, %d owners, %d managers, agents %t: want one namespace, an owner for each manager, and no agents", c.Namespaces, c.Owners, c.Managers, c.Agents)
	case c.Duration < time.Second || c.Duration > maxDuration:
		return bad("duration", "%v, want 1s to %v", c.Duration, maxDuration)
	}
	return Kinds().Validate(c.Faults)
}

// Flags returns the flags of a world. With the seed they determine every event in it.
func (c *Config) Flags() *pflag.FlagSet {
	var usual Config
	if err := usual.Validate(); err != nil {
		panic(err) // the zero Config is documented to be valid
	}
	c.Faults = usual.Faults
	flags := pflag.NewFlagSet("world", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.DurationVar(&c.Duration, "duration", usual.Duration, "duration of the phase with faults, in virtual time")
	flags.IntVar(&c.Managers, "managers", usual.Managers, "managers in each world")
	flags.IntVar(&c.Owners, "owners", usual.Owners, "hosts that run owners in each world")
	flags.IntVar(&c.Lookups, "lookups", usual.Lookups, "lookups in each world")
	flags.IntVar(&c.Namespaces, "namespaces", usual.Namespaces, "namespaces in each world, 1 or 2; 0 lets the seed choose")
	flags.Var(Kinds().MixFlag(&c.Faults), "faults", "a `mix` of faults, with their weights")
	flags.BoolVar(&c.Diskless, "diskless", false, "managers without a store: they elect the leader by a Flease lease, and collect the\nleases from the owners in a census; --managers defaults to 3")
	flags.BoolVar(&c.Agents, "agents", false, "owners answer other processes, which rely on the answer for a limited time,\nas \"leasehold agent\" does; no state is moved")
	flags.BoolVar(&c.Supervised, "supervised", false, "most owners have a supervisor, as with \"leasehold run\": it reports their end to the\nmanagers, and their ranges are granted without waiting for the leases to expire")
	flags.BoolVar(&c.Embedded, "embedded", false, "managers without a store inside the processes of owners, as with package cluster:\nthey crash and restart together; --managers defaults to 3")
	flags.BoolVar(&c.LeasesOff, "leases-off", false, "break the world on purpose, to test the checks:\nowners ignore the expiry of their leases")
	flags.BoolVar(&c.EqualClocks, "equal-clocks", false, "break the world on purpose, to test the checks:\nall clocks run at the same rate (reported as branches never taken)")
	return flags
}

// FlagsParsed completes the configuration after the flags are parsed: the default number of managers depends
// on Diskless and Embedded.
func (c *Config) FlagsParsed(flags *pflag.FlagSet) error {
	if !c.Diskless && !c.Embedded {
		return nil
	}
	if !flags.Changed("managers") {
		c.Managers = 0
	}
	if c.Embedded && !flags.Changed("owners") {
		c.Owners = 0
	}
	if err := c.Validate(); err != nil {
		return err
	}
	if !flags.Changed("managers") {
		flags.Lookup("managers").DefValue = strconv.Itoa(c.Managers)
	}
	return nil
}
