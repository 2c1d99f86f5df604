package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

const rebalanceHelp = `Has the policy asked at once who should have which keys, without regard to how
much it may move in a minute. It returns when the moves have begun; "leasehold
moves" shows how far they are.

The policies balanced and adaptive go by the loads that owners report. The others
do not look at loads, and move something only if the table is not as they want it.`

func newRebalanceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rebalance",
		Short:   "Balance the load now, whatever it moves",
		Long:    rebalanceHelp,
		Example: "  leasehold rebalance -n presence --dry-run",
		Args:    noArguments,
	}
	o := addOrderFlags(cmd)
	c := newClient(cmd).inNamespace(cmd, usualNamespace)
	cmd.RunE = c.run(func(ctx context.Context, _ []string) error { return c.rebalance(ctx, o) })
	return cmd
}

// A rebalanceDocument is what "rebalance --json" prints.
type rebalanceDocument struct {
	Namespace string     `json:"namespace"`
	Outcome   string     `json:"outcome"` // planned (with --dry-run) or begun
	Plan      admin.Plan `json:"plan"`
}

func (c *client) rebalance(ctx context.Context, o *orderOptions) error {
	plan, err := within(ctx, c, func(ctx context.Context, namespace string) (admin.Plan, error) {
		return c.admin.Rebalance(ctx, namespace, o.options())
	})
	if err != nil {
		return err
	}
	d := rebalanceDocument{Namespace: c.namespace, Outcome: admin.OutcomeBegun, Plan: plan}
	if o.dryRun {
		d.Outcome = admin.OutcomePlanned
		return c.print(d, func() string { return planText(plan) })
	}
	return c.print(d, func() string {
		if plan.Total == 0 {
			return "The policy has nothing to move.\n"
		}
		return fmt.Sprintf("%s%s: see 'leasehold moves'\n", planText(plan), console.Good("begun"))
	})
}
