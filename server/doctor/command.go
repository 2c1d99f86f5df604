package doctor

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/cli"
)

const doctorHelp = `Checks a deployment, and says what to do about what it finds: whether every manager
answers and how fast, whether all agree who leads, what they run, how much is left of
their stores, files and connections, how far apart their clocks are and how much faster
one runs than another, how long the certificates of managers and our own are valid, and
how each namespace and its owners and lookups fare.

Name all managers with --managers: those that are not named are not checked. Clocks are
compared by asking again and again for as long as --for says: the longer, the smaller
the differences that are found.

Each line is "ok", "hint" for what may be meant so or may become a problem, or "WRONG".
With --verbose it also says what was not checked. It changes nothing.

Exit status: 0 nothing is wrong; 1 something is; 2 it could not be checked as asked;
130 interrupted.`

// NewCommand is the subcommand "doctor".
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a deployment, and say what to fix",
		Long:  doctorHelp,
		Example: `  leasehold doctor --managers m1:7400,m2:7400,m3:7400
  leasehold doctor --for 1m --json | jq '.findings[] | select(.verdict != "ok")'`,
		Args: cli.NoArguments,
	}
	o := &options{Client: cli.NewClient(cmd)}
	cmd.Flags().DurationVar(&o.lasting, "for", 5*time.Second, "how long to watch clocks and owners")
	cmd.Flags().StringVar(&o.policy, "access", "", "an access `file` of managers to look at, too")
	cmd.Flags().BoolVar(&o.verbose, "verbose", false, "also say what was not checked")
	cmd.RunE = o.Run(func(ctx context.Context, _ []string) error { return o.doctor(ctx) })
	return cmd
}
