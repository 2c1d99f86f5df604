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

const fleaseHelp = `Simulates and measures Flease: leases that a group of processes agrees on without a
manager.`

// NewFlease returns the command "flease".
func NewFlease() *cobra.Command {
	return cli.Group("flease", "Simulate and measure leases without a manager", fleaseHelp,
		newFleaseSimCommand(), newFleaseBenchCommand(), newFleaseBenchMemberCommand())
}

const fleaseSimHelp = `Runs groups of the real Flease machine in virtual time, over a network that loses,
duplicates and delays packets, with crashes that lose all memory, and checks on true
time that no two processes hold one lease. Flease is safe if either the wall clocks
agree within epsilon, or the rates of the monotonic clocks are within the drift
bound. So there are worlds in which only the first holds (--world wall), only the
second (--world mono), or both, and worlds in which two processes have the same ID
(twins).

Each world is created from a seed: the same seed, flags and code give the same
world, so a violation is printed with the command that replays it.

With --explore it explores instead all behaviour of a group of three, up to that
number of steps, with at most --detours steps with a fault or reordering: a packet
is reordered or delayed, perhaps for ever, or a process crashes. --detours -1
explores all interleavings, of which there are very many.

--faults is "default", "none", or kinds with weights, such as crash=3,loss=1. The
kinds are:

%s
Exit status: 0 no violation; 1 violations; 2 the run failed; 3 no check detected the
bug planted with --mutant; 130 interrupted.`

const fleaseSimExample = `  leasehold-lab flease sim                                  # 2000 worlds
  leasehold-lab flease sim --world mono --seeds 10000       # only monotonic clocks are reliable
  leasehold-lab flease sim --seed 17 --seeds 1 --trace      # all events of world 17
  leasehold-lab flease sim --explore 14 --detours 2         # all behaviour`

func newFleaseSimCommand() *cobra.Command {
	config := &fleasesim.Config{}
	p := search.Protocol{
		Command: "flease sim", Simulation: config, Faults: &config.Faults, World: config.Flags(), Mutants: mutant.Fleases(), Scenarios: explore.Explorations, Notices: true,
	}
	return newSearch(p, fleasesim.Kinds(), 2000, func() error { return nil }, &cobra.Command{
		Short: "Search for violations of Flease in simulated groups", Long: fleaseSimHelp, Example: fleaseSimExample,
	})
}

const fleaseBenchHelp = `Measures how many leases per second a group agrees on, on this computer: each member
is a process of its own, and they communicate over the loopback interface. Members
acquire new resources, in batches, all at the same time, and release them; only the
acquisition is measured. A batch begins when all members have completed the previous
one.

With --proposers 1 one member acquires, and the others are only acceptors.`

func newFleaseBenchCommand() *cobra.Command {
	var (
		c      fleasebench.Config
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how many leases per second a group agrees on",
		Long:  fleaseBenchHelp,
		Args:  cli.NoArguments,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&c.Leases, "leases", 10000, "number of leases in a batch of one member")
	flags.IntVar(&c.Batches, "batches", 20, "number of batches")
	flags.IntVar(&c.Members, "members", 3, "number of members")
	flags.IntVar(&c.Proposers, "proposers", 0, "number of members that acquire (default all)")
	flags.DurationVar(&c.Lease, "lease", 5*time.Second, "duration of leases; members wait a little longer than that before they start")
	flags.BoolVar(&c.Sealed, "sealed", false, "encrypt and authenticate packets with a key")
	flags.BoolVar(&c.TCP, "tcp", false, "use TCP instead of UDP")
	flags.BoolVar(&asJSON, "json", false, "print only JSON")
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
		{"members", fmt.Sprintf("%d, %d of them acquire", r.Members, r.Proposers)},
		{"batches", fmt.Sprintf("%d of %d leases each", r.Batches, r.Leases)},
		{"a batch takes", fmt.Sprintf("%.1f ms, at most %.1f ms", r.BatchMillisP50, r.BatchMillisMax)},
		{"a lease takes", fmt.Sprintf("%.2f us of CPU time of all members", r.CPUMicros)},
		{"leases per second", console.Heading(fmt.Sprintf("%.0f", r.LeasesPerSecond))},
	})
}

const benchMember = "bench-member"

// newFleaseBenchMemberCommand returns the command of a member of the benchmark. Its argument is its
// configuration. Its standard input and output are for its parent, and it ends with the input.
func newFleaseBenchMemberCommand() *cobra.Command {
	return &cobra.Command{
		Use:    benchMember,
		Short:  "Run a member of the benchmark",
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
