package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
)

// orderOptions are the flags of commands that move keys.
type orderOptions struct {
	dryRun    bool
	loseState bool
	noWait    bool
	within    time.Duration
}

func addOrderFlags(cmd *cobra.Command) *orderOptions {
	o := &orderOptions{}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only say what would move where")
	cmd.Flags().BoolVar(&o.loseState, "lose-state", false, "go on although state is lost")
	return o
}

// canWait adds the flags of commands that wait until it is done.
func (o *orderOptions) canWait(cmd *cobra.Command) *orderOptions {
	cmd.Flags().BoolVar(&o.noWait, "no-wait", false, "do not wait until it is done")
	cmd.Flags().DurationVar(&o.within, "within", 0, "how long to wait until it is done (default as long as it takes)")
	cmd.MarkFlagsMutuallyExclusive("no-wait", "within")
	cmd.MarkFlagsMutuallyExclusive("no-wait", "dry-run")
	return o
}

func (o *orderOptions) validate() error {
	if o.within < 0 {
		return fmt.Errorf("--within %v: want a time above 0", o.within)
	}
	return nil
}

// options are those of package admin.
func (o *orderOptions) options() admin.OrderOptions {
	return admin.OrderOptions{DryRun: o.dryRun, LoseState: o.loseState}
}

// waiting returns a context for the time that somebody wants to wait.
func (o *orderOptions) waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.within > 0 {
		return context.WithTimeout(ctx, o.within)
	}
	return context.WithCancel(ctx)
}
