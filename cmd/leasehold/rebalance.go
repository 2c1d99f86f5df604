package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
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
	Namespace string       `json:"namespace"`
	Outcome   string       `json:"outcome"` // planned (with --dry-run) or begun
	Plan      planDocument `json:"plan"`
}

func (c *client) rebalance(ctx context.Context, o *orderOptions) error {
	d := rebalanceDocument{Outcome: "planned"}
	if err := c.askWithin(ctx, func(ctx context.Context, to admin) error {
		d.Namespace = c.namespace
		request := &leaseholdv1.RebalanceRequest{Version: wire.Version, Namespace: c.namespace, DryRun: o.dryRun, LoseState: o.loseState}
		answer, err := to.Rebalance(ctx, request)
		if err != nil {
			return c.whyNotRebalanced(ctx, to, err)
		}
		d.Plan = planJSON(answer.GetPlan())
		return nil
	}); err != nil {
		return err
	}
	if o.dryRun {
		return c.print(d, d.Plan.text)
	}
	d.Outcome = "begun"
	return c.print(d, func() string {
		if d.Plan.Total == 0 {
			return "The policy has nothing to move.\n"
		}
		return fmt.Sprintf("%s%s: see 'leasehold moves'\n", d.Plan.text(), good("begun"))
	})
}

// whyNotRebalanced says who is to blame for a refusal, where it can.
func (c *client) whyNotRebalanced(ctx context.Context, to admin, refusal error) error {
	owners, err := c.listOwners(ctx, to)
	if err != nil {
		return refusal
	}
	return whyRefused(refusal, "rebalancing", owners, func() (*leaseholdv1.Plan, error) {
		answer, err := to.Rebalance(ctx, &leaseholdv1.RebalanceRequest{Version: wire.Version, Namespace: c.namespace, DryRun: true})
		return answer.GetPlan(), err
	})
}
