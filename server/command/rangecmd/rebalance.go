package rangecmd

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

const rebalanceHelp = `Has the policy asked at once who should have which keys, without regard to how
much it may move in a minute. It returns when the moves have begun;
"leasehold range moves" shows how far they are.

The policies balanced and adaptive go by the loads that owners report. The others
do not look at loads, and move something only if the table is not as they want it.`

func newRebalanceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rebalance",
		Short:   "Balance the load now, whatever it moves",
		Long:    rebalanceHelp,
		Example: "  leasehold range rebalance -n presence --dry-run",
		Args:    cli.NoArguments,
	}
	o := cli.AddOrderFlags(cmd)
	c := cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace)
	cmd.RunE = c.Run(func(ctx context.Context, _ []string) error { return rebalance(ctx, c, o) })
	return cmd
}

// A rebalanceDocument is what "rebalance --json" prints.
type rebalanceDocument struct {
	Namespace string     `json:"namespace"`
	Outcome   string     `json:"outcome"` // planned (with --dry-run) or begun
	Plan      admin.Plan `json:"plan"`
}

func rebalance(ctx context.Context, c *cli.Client, o *cli.OrderOptions) error {
	plan, err := cli.Within(ctx, c, func(ctx context.Context, namespace string) (admin.Plan, error) {
		return c.Admin.Rebalance(ctx, namespace, o.Options())
	})
	if err != nil {
		return err
	}
	d := rebalanceDocument{Namespace: c.Namespace, Outcome: admin.OutcomeBegun, Plan: plan}
	if o.DryRun {
		d.Outcome = admin.OutcomePlanned
		return c.Print(d, func() string { return cli.PlanText(plan) })
	}
	return c.Print(d, func() string {
		if plan.Total == 0 {
			return "The policy has nothing to move.\n"
		}
		return fmt.Sprintf("%s%s: see 'leasehold range moves'\n", cli.PlanText(plan), console.Good("begun"))
	})
}
