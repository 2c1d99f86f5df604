package doctor

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/cli"
)

const doctorHelp = `Checks a deployment, and advises how to fix problems: whether every manager responds and
how fast, whether all agree on the leader, their versions, the use of their stores, files
and connections, the offsets and rates of their clocks, the expiry of certificates, and
the state of each namespace with its owners and lookups.

Name all managers with --managers: only these are checked. Clocks are sampled for the time
in --for: the longer, the smaller the differences that can be detected.

Each line is "ok", "hint" for something that may be intended or may become a problem, or
"WRONG". With --verbose skipped checks are shown, too. Nothing is changed.

Exit status: 0 nothing is wrong; 1 something is wrong; 2 the checks could not run; 130
interrupted.`

// NewCommand is the subcommand "doctor".
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a deployment, and advise how to fix problems",
		Long:  doctorHelp,
		Example: `  leasehold doctor --managers m1:7400,m2:7400,m3:7400
  leasehold doctor --for 1m --json | jq '.findings[] | select(.verdict != "ok")'`,
		Args: cli.NoArguments,
	}
	o := &options{Client: cli.NewClient(cmd)}
	cmd.Flags().DurationVar(&o.lasting, "for", 5*time.Second, "observation time of clocks and owners")
	cmd.Flags().StringVar(&o.policy, "access", "", "also check this access policy `file` of managers")
	cmd.Flags().BoolVar(&o.verbose, "verbose", false, "also show skipped checks")
	cmd.RunE = o.Run(func(ctx context.Context, _ []string) error { return o.doctor(ctx) })
	return cmd
}
