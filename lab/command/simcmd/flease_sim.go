package simcmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/lab/fleasesim"
	"github.com/leasehold-dev/leasehold/lab/fleasesim/explore"
	"github.com/leasehold-dev/leasehold/lab/mutant"
	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
	"github.com/leasehold-dev/leasehold/lab/sim/search"
)

const fleaseSimHelp = `Runs groups of the real Flease machine in virtual time, over a network that
loses, repeats and delays, with crashes that forget everything, and checks on true
time that no two processes hold one lease. Flease is safe if either the wall clocks
agree within epsilon, or the monotonic clocks run at rates within the drift bound;
so there are worlds in which only the one holds (--world wall), or only the other
(--world mono), or both, or in which two processes have the same id (twins).

Each world is made from a seed: the same seed, flags and code give the same world,
so a violation is printed together with the command that replays it.

With --explore it tries instead all that can happen to a group of three within so
many steps, with so many --detours from what would happen if nothing were wrong:
a packet overtakes another or is held back, perhaps for ever, or a process dies.
--detours -1 tries all interleavings, of which there are very many.

--faults is "default", "none", or kinds with weights, such as crash=3,loss=1. The
kinds are:

%s
Exit status: 0 no violation; 1 violations; 2 it could not be done as asked; 3 a bug
was planted with --mutant and nothing noticed it; 130 interrupted.`

const fleaseSimExample = `  leasehold-lab flease sim                                  # 2000 worlds
  leasehold-lab flease sim --world mono --seeds 10000       # only monotonic clocks can be trusted
  leasehold-lab flease sim --seed 17 --seeds 1 --trace      # what happens in world 17
  leasehold-lab flease sim --explore 14 --detours 2         # everything that can happen`

func newFleaseSimCommand() *cobra.Command {
	config := &fleasesim.Config{}
	world := config.Flags()
	s := &search.Job{Protocol: search.Protocol{
		Command: "flease sim", Simulation: config, Faults: &config.Faults, World: world, Mutants: mutant.Fleases(), Notices: true,
		Scenarios: func(depth int, detours int8) []explorer.Exploration {
			return explorer.Explorations(explore.Scenarios(depth, detours))
		},
	}}
	cmd := &cobra.Command{
		Use:     "sim",
		Short:   "Search for violations of Flease in simulated groups",
		Long:    fmt.Sprintf(fleaseSimHelp, faultKinds(fleasesim.Kinds())),
		Example: fleaseSimExample,
	}
	addSearch(cmd, s, 2000, fleasesim.Kinds(), func() error { return nil })
	return cmd
}
