package simcmd

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/fleasebench"
	"github.com/leasehold-dev/leasehold/server/console"
)

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
