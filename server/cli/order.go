package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

// OrderOptions holds the flags of commands that move keys.
type OrderOptions struct {
	DryRun    bool
	loseState bool
	NoWait    bool
	Within    time.Duration
}

func AddOrderFlags(cmd *cobra.Command) *OrderOptions {
	o := &OrderOptions{}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "print the plan, and move nothing")
	cmd.Flags().BoolVar(&o.loseState, "lose-state", false, "continue even if keys lose their state")
	return o
}

// CanWait adds the flags of commands that wait until the order is complete.
func (o *OrderOptions) CanWait(cmd *cobra.Command) *OrderOptions {
	cmd.Flags().BoolVar(&o.NoWait, "no-wait", false, "do not wait until the order is complete")
	cmd.Flags().DurationVar(&o.Within, "within", 0, "timeout until the order is complete (default none)")
	cmd.MarkFlagsMutuallyExclusive("no-wait", "within")
	cmd.MarkFlagsMutuallyExclusive("no-wait", "dry-run")
	return o
}

func (o *OrderOptions) Validate() error {
	if o.Within < 0 {
		return fmt.Errorf("--within %v: want a duration above 0", o.Within)
	}
	return nil
}

// Options converts the flags to options of package admin.
func (o *OrderOptions) Options() admin.OrderOptions {
	return admin.OrderOptions{DryRun: o.DryRun, LoseState: o.loseState}
}

// Await waits until an order is complete, and prints it. wait blocks until then; done formats the
// result, unfinished the rest if the wait ends early; explain adds advice to an error of the order.
func (o *OrderOptions) Await(
	ctx context.Context, c *Client, order any, wait func(ctx context.Context, report func(share float64, text string, trouble error)) error,
	done, unfinished func() string, explain func(error) error,
) error {
	waiting, cancel := ctx, func() {}
	if o.Within > 0 {
		waiting, cancel = context.WithTimeout(ctx, o.Within)
	}
	defer cancel()
	shows, began := console.NewProgress(c.Errs, c.JSON), time.Now()
	err := wait(waiting, func(share float64, text string, trouble error) {
		if trouble != nil {
			text = console.Bad("no manager responds, retrying") + "; " + text
		}
		shows.Report(time.Since(began), share, text)
	})
	shows.Stop()
	if err == nil {
		return c.Print(order, done)
	}
	if c.JSON {
		if err := Write(c.Out, console.JSON(order)); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		c.Errs.Say("%s\n", unfinished())
		return StatusInterrupted
	case waiting.Err() != nil:
		return Fail(fmt.Errorf("not complete after %v\n%s", o.Within, unfinished()))
	}
	if explained := explain(err); explained != nil {
		return Fail(explained)
	}
	return c.Explain(ctx, err)
}
