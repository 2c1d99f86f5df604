package fleasesim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// A Kind is the assumption about clocks that holds in a world.
type Kind string

// The kinds of worlds.
const (
	Any   Kind = "any"   // the seed chooses
	Wall  Kind = "wall"  // wall clocks are within epsilon; monotonic clocks have any rate, or stand still
	Mono  Kind = "mono"  // monotonic clocks are within the drift bound; wall clocks drift, and are set
	Both  Kind = "both"  // both are within their bounds
	Twins Kind = "twins" // as Both, but two processes have the same ID: leases are not exclusive until one has given way, all else holds
)

var kinds = []string{string(Any), string(Wall), string(Mono), string(Both), string(Twins)}

// Config describes a simulated world. Together with the seed it determines every event.
type Config struct {
	Kind      Kind
	Processes int           // 3 to 7; 0 lets the seed choose
	Resources int           // 1 to 4; 0 lets the seed choose
	Duration  time.Duration // of the phase with faults; default 15 s; a lease lasts 1 s
	Faults    engine.Mix    // default [Kinds].Default
}

// Limits of a world.
const (
	minProcesses = 3
	maxProcesses = 7
	maxResources = 4
	maxDuration  = time.Hour
)

// Validate sets defaults and returns an error for invalid values.
func (c *Config) Validate() error {
	c.Duration = cmp.Or(c.Duration, 15*time.Second)
	if c.Faults == nil {
		c.Faults = Kinds().Default()
	}
	c.Kind = cmp.Or(c.Kind, Any)
	bad := func(what, format string, args ...any) error {
		return leasehold.Errorf("simulation", leasehold.ErrInvalid, what, format, args...)
	}
	switch {
	case !slices.Contains(kinds, string(c.Kind)):
		return bad("world", "kind %q, want one of %s", c.Kind, strings.Join(kinds, ", "))
	case c.Processes != 0 && (c.Processes < minProcesses || c.Processes > maxProcesses):
		return bad("processes", "%d, want %d to %d, or 0 to let the seed choose", c.Processes, minProcesses, maxProcesses)
	case c.Resources < 0 || c.Resources > maxResources:
		return bad("resources", "%d, want 1 to %d, or 0 to let the seed choose", c.Resources, maxResources)
	case c.Duration < time.Second || c.Duration > maxDuration:
		return bad("duration", "%v, want 1s to %v", c.Duration, maxDuration)
	}
	return Kinds().Validate(c.Faults)
}

// Flags returns the flags of a world. With the seed they determine every event in it.
func (c *Config) Flags() *pflag.FlagSet {
	var usual Config
	if err := usual.Validate(); err != nil {
		panic(err) // the zero Config is valid
	}
	c.Faults = usual.Faults
	flags := pflag.NewFlagSet("world", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.StringVar((*string)(&c.Kind), "world", string(Any), "the `kind` of worlds: "+strings.Join(kinds, ", "))
	flags.Var(Kinds().MixFlag(&c.Faults), "faults", "a `mix` of faults, with their weights")
	flags.IntVar(&c.Processes, "processes", 0, "processes in each world, 3 to 7; 0 lets the seed choose")
	flags.IntVar(&c.Resources, "resources", 0, "resources in each world, 1 to 4; 0 lets the seed choose")
	flags.DurationVar(&c.Duration, "duration", usual.Duration, "duration of the phase with faults, in virtual time; a lease lasts 1s")
	return flags
}
