package simcmd

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/fleasebench"
	"github.com/leasehold-dev/leasehold/lab/fleasesim"
	"github.com/leasehold-dev/leasehold/lab/fleasesim/explore"
	"github.com/leasehold-dev/leasehold/lab/mutant"
	"github.com/leasehold-dev/leasehold/lab/sim/search"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

const fleaseHelp = `Tries to break Flease, leases that a group of processes agree upon without a manager,
and measures it.`

// NewFlease returns the command "flease".
func NewFlease() *cobra.Command {
	return cli.Group("flease", "Simulate and measure leases without a manager", fleaseHelp,
		newFleaseSimCommand(), newFleaseBenchCommand(), newFleaseBenchMemberCommand())
}

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
	p := search.Protocol{
		Command: "flease sim", Simulation: config, Faults: &config.Faults, World: config.Flags(), Mutants: mutant.Fleases(), Scenarios: explore.Explorations, Notices: true,
	}
	return newSearch(p, fleasesim.Kinds(), 2000, func() error { return nil }, &cobra.Command{
		Short: "Search for violations of Flease in simulated groups", Long: fleaseSimHelp, Example: fleaseSimExample,
	})
}

const fleaseBenchHelp = `Measures how many leases in a second a group can agree upon, on this computer: each
member is a process of its own, and they speak over the loopback. Members acquire
resources that nobody has heard of before, in batches, all at the same time, and
release them; only the acquiring counts. A batch begins when all members have
finished the one before.

With --proposers 1 one member acquires, and the others only agree.`

func newFleaseBenchCommand() *cobra.Command {
	var (
		c      fleasebench.Config
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how many leases in a second a group agrees upon",
		Long:  fleaseBenchHelp,
		Args:  cli.NoArguments,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&c.Leases, "leases", 10000, "how many leases a batch of one member has")
	flags.IntVar(&c.Batches, "batches", 20, "how many batches")
	flags.IntVar(&c.Members, "members", 3, "how many members")
	flags.IntVar(&c.Proposers, "proposers", 0, "how many of them acquire (default all)")
	flags.DurationVar(&c.Lease, "lease", 5*time.Second, "how long leases last; members wait a little longer than that before they begin")
	flags.BoolVar(&c.Sealed, "sealed", false, "use a key: encrypt and authenticate packets")
	flags.BoolVar(&c.TCP, "tcp", false, "connections instead of datagrams")
	flags.BoolVar(&asJSON, "json", false, "print JSON, and nothing else")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := c.Validate(); err != nil {
			return err
		}
		report, err := fleasebench.Run(cmd.Context(), c, "flease "+benchMember)
		if err != nil {
			return cli.Fail(err)
		}
		out := console.New(cmd.OutOrStdout())
		if asJSON {
			return cli.Write(out, console.JSON(report))
		}
		return cli.Write(out, fleaseBenchText(&report))
	}
	return cmd
}

func fleaseBenchText(r *fleasebench.Report) string {
	return console.Facts([]console.Entry{
		{"members", fmt.Sprintf("%d, of which %d acquire", r.Members, r.Proposers)},
		{"batches", fmt.Sprintf("%d of %d leases each", r.Batches, r.Leases)},
		{"a batch takes", fmt.Sprintf("%.1f ms, %.1f ms at most", r.BatchMillisP50, r.BatchMillisMax)},
		{"a lease takes", fmt.Sprintf("%.2f us of CPU, of all members together", r.CPUMicros)},
		{"leases per second", console.Heading(fmt.Sprintf("%.0f", r.LeasesPerSecond))},
	})
}

const benchMember = "bench-member"

// newFleaseBenchMemberCommand is one member of the bench. Its argument is its
// configuration. Its standard input and output are for its parent, and it ends with the
// input.
func newFleaseBenchMemberCommand() *cobra.Command {
	return &cobra.Command{
		Use:    benchMember,
		Short:  "Run a member of the bench",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := proc.Serve(cmd.Context(), proc.RoleOf(fleasebench.StartMember), []byte(args[0])); err != nil {
				return cli.Fail(err)
			}
			return nil
		},
	}
}
