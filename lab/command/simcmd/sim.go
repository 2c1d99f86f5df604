// Package simcmd has the subcommands of the simulators, and the benchmark of Flease.
package simcmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/lab/mutant"
	"github.com/leasehold-dev/leasehold/lab/sim"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
	"github.com/leasehold-dev/leasehold/lab/sim/explore"
	"github.com/leasehold-dev/leasehold/lab/sim/search"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

const simHelp = `Runs the real protocol machines as whole clusters in virtual time: managers, owners,
lookups and a store, on clocks with drift, over a network that loses, duplicates and
reorders messages, with crashes, pauses, failovers and hostile messages. After every
event it checks the invariants; for example I1: at any instant at most one server's
check of a key succeeds. First there are faults, for --duration; then all of them
end, and the cluster must recover by itself within its bound.

Each world is created from a seed. The same seed, flags and code give the same
world, event by event, on any computer, so a violation is printed with the one
command that replays it with a readable trace.

Faults are injected at random, with the weights in --faults. That is "default", with
every kind; "none"; or kinds with weights, such as owner-crash=3,loss=1. A list
after "default," changes the default: default,hostile=0 omits one. The kinds are:

%s
The summary lists branches of the machines, with how often they were taken. Those
that were never taken were not tested by this run.

With --explore it explores instead all behaviour of two managers with a store and
two owners up to that number of steps, with at most --detours steps with a fault or
reordering: a message is reordered, duplicated, delayed or lost, the store does not
reply, a process crashes or is stopped. A violation is printed with the path to it,
and with the command that repeats it.

Exit status: 0 no violation; 1 violations; 2 the run failed; 3 no check detected the
bug planted with --mutant; 130 interrupted before a violation was found. ("go run"
replaces all of these by 1.)`

const simExample = `  leasehold-lab sim                                     # the default: 1000 worlds
  leasehold-lab sim --seeds 100000 --owners 5           # more worlds, larger ones
  leasehold-lab sim --faults clock-rate=1,owner-pause=1 # only these faults
  leasehold-lab sim --seed 17 --seeds 1 --trace         # all events of world 17
  leasehold-lab sim --leases-off --seeds 100            # tests the checks
  leasehold-lab sim --explore 60 --detours 1            # all behaviour
  leasehold-lab sim --mutant "$(leasehold-lab sim --list-mutants | head -n 1)"`

// New returns the command "sim".
func New() *cobra.Command {
	config := &sim.Config{}
	p := search.Protocol{
		Command: "sim", Simulation: config, Faults: &config.Faults, World: config.Flags(), Mutants: mutant.All(), Scenarios: explore.Explorations,
	}
	return newSearch(p, sim.Kinds(), 1000, func() error { return checkSimFlags(config, p.World) }, &cobra.Command{
		Short: "Search for violations of the protocol in simulated clusters", Long: simHelp, Example: simExample,
	})
}

// checkSimFlags returns an error for flags with values that the configuration would replace by defaults.
func checkSimFlags(c *sim.Config, world *pflag.FlagSet) error {
	if err := c.FlagsParsed(world); err != nil {
		return err
	}
	for _, size := range []struct {
		flag  string
		value int
	}{{"managers", c.Managers}, {"owners", c.Owners}, {"lookups", c.Lookups}} {
		if size.value < 1 {
			return fmt.Errorf("--%s %d: want at least 1", size.flag, size.value)
		}
	}
	if c.Duration == 0 {
		return errors.New("--duration 0s: want at least 1s; for a world without faults use --faults none")
	}
	return nil
}

// newSearch completes a command that searches, with a default number of worlds. Its help includes the kinds
// of faults.
func newSearch(p search.Protocol, kinds engine.Kinds, seeds int, check func() error, cmd *cobra.Command) *cobra.Command {
	s := &search.Job{Protocol: p}
	var entries []console.Entry
	for _, name := range kinds.Names() {
		entries = append(entries, console.Entry{name})
	}
	cmd.Use, cmd.Args, cmd.Long = "sim", cli.NoArguments, fmt.Sprintf(cmd.Long, console.Grid(entries, console.UsualWidth))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := check(); err != nil {
			return err
		}
		if err := s.Validate(); err != nil {
			return err
		}
		outcome, err := s.Run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		switch {
		case err != nil:
			return cli.Fail(err)
		case outcome != search.Passed:
			return cli.Status(outcome)
		}
		return nil
	}
	s.AddFlags(cmd.Flags(), seeds)
	// The names are those of flags just added, the only thing that can go wrong.
	_ = cmd.RegisterFlagCompletionFunc("mutant", func(*cobra.Command, []string, string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		for _, m := range s.Mutants {
			names = append(names, cobra.CompletionWithDesc(m.Name, m.Why()))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	_ = cmd.RegisterFlagCompletionFunc("faults", cobra.FixedCompletions(
		append([]string{"default", "none"}, kinds.Names()...), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
