package fleasesim

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold"
)

// Flags are the flags that shape a world: together with the seed they determine all
// that happens in it.
func (c *Config) Flags() *pflag.FlagSet {
	var usual Config
	if err := usual.Validate(); err != nil {
		panic(err) // the zero Config is valid
	}
	c.Faults = usual.Faults
	flags := pflag.NewFlagSet("world", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Var(&c.Kind, "world", "the `kind` of worlds: "+strings.Join(kindNames[:], ", "))
	flags.Var(Kinds().MixFlag(&c.Faults), "faults", "a `mix` of faults: what strikes, and how often")
	flags.IntVar(&c.Processes, "processes", 0, "processes in each world, 3 to 7; 0 lets the seed choose")
	flags.IntVar(&c.Resources, "resources", 0, "resources in each world, 1 to 4; 0 lets the seed choose")
	flags.DurationVar(&c.Duration, "duration", usual.Duration, "how long faults go on in each world, in its own time; a lease lasts 1s")
	return flags
}

// Set reads the name of a kind.
func (k *Kind) Set(s string) error {
	i := slices.Index(kindNames[:], s)
	if i < 0 {
		return leasehold.Errorf("kind of world", leasehold.ErrInvalid, s, "no such kind; there are %s", strings.Join(kindNames[:], ", "))
	}
	*k = Kind(i)
	return nil
}

// Type is the type of the flag in the help.
func (Kind) Type() string { return "string" }
