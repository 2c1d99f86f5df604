package sim

import (
	"strconv"

	"github.com/spf13/pflag"
)

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
